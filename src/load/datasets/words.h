// Common English words, most of them one token in any vocabulary: text for prompts that need a
// length and no meaning.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "load/random.h"

namespace vivace::load {

std::span<const std::string_view> CommonWords();

// "words like these", `count` of them with a space between; empty for 0.
std::string DrawWords(size_t count, Random* random);

}  // namespace vivace::load
