// Text of strangers on a terminal and in tables. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vivace::load {

// Without control characters (a terminal obeys them), valid UTF-8, at most `most` characters.
std::string Printable(std::string_view text, size_t most = 200);

// The same, and what is too much is taken out of the middle: names differ at their ends.
std::string CutInMiddle(std::string_view text, size_t most);
// Each of them so, longer where two that differ would look alike.
std::vector<std::string> CutApart(const std::vector<std::string>& texts, size_t most);

// "12.34", "1,234", "-" for what is not there: as many digits as a person reads.
std::string Figure(double value);

}  // namespace vivace::load
