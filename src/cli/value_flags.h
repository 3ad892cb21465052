// Flags whose values are numbers in a range, or words of a list: for tables of commands that have
// many. Each stores into a variable that outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"

namespace vivace::cli {

// A number with or without a fraction, from `least` to `most`; the error says so.
Flag NumberFlag(std::string name, std::string unit, std::string help, double* to, double least,
                double most);
Flag NumberFlag(std::string name, std::string help, std::optional<double>* to, double least,
                double most);
// A whole number, "32k" as well.
Flag CountFlag(std::string name, std::string help, int32_t* to, int32_t least, int32_t most);

// A text as it is.
Flag TextFlag(std::string name, std::string value, std::string default_text, std::string help,
              std::string* to, std::vector<std::string> aliases = {});

// Words that follow a flag of `lists` are its values, up to the next that begins with a dash: the
// flag is put in front of each. (`--goodput ttft:200 tpot:50`, as vLLM takes it.)
std::vector<std::string> RepeatFlags(std::span<const std::string> args,
                                     std::span<const std::string_view> lists);

// "a,b, c" cut at its commas; none is empty.
std::vector<std::string> CutList(std::string_view text);

}  // namespace vivace::cli
