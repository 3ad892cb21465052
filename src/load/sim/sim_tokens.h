// A tokenizer for servers that have no model: a token is a word. The word "t123" is token 123, so
// that ids, their text and its ids again are the same; any other word is a token by its hash. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vivace::load {

inline constexpr int32_t kSimVocabulary = 32'768;

std::vector<int32_t> SimEncode(std::string_view text);
// " t5 t77": ids beyond the vocabulary stand for nothing.
std::string SimDecode(std::span<const int32_t> ids);
int64_t SimCount(std::string_view text);  // SimEncode(text).size()

}  // namespace vivace::load
