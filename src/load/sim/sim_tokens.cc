#include "load/sim/sim_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace vivace::load {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// The next word of `text`, which is then taken off; empty: none.
std::string_view TakeWord(std::string_view* text) {
  size_t begin = 0;
  while (begin < text->size() && IsSpace((*text)[begin])) ++begin;
  size_t end = begin;
  while (end < text->size() && !IsSpace((*text)[end])) ++end;
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

int32_t IdOf(std::string_view word) {
  int32_t id = -1;
  if (word.starts_with('t')) {
    const auto read = std::from_chars(word.data() + 1, word.data() + word.size(), id);
    const bool whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
    if (whole && id >= 0 && id < kSimVocabulary) return id;
  }
  uint32_t hash = 2'166'136'261;  // FNV-1a
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619;
  return static_cast<int32_t>(hash % kSimVocabulary);
}

}  // namespace

std::vector<int32_t> SimEncode(std::string_view text) {
  std::vector<int32_t> ids;
  for (std::string_view word; !(word = TakeWord(&text)).empty();) ids.push_back(IdOf(word));
  return ids;
}

int64_t SimCount(std::string_view text) {
  int64_t count = 0;
  while (!TakeWord(&text).empty()) ++count;
  return count;
}

std::string SimDecode(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= kSimVocabulary) continue;
    fmt::format_to(std::back_inserter(text), " t{}", id);
  }
  return text;
}

}  // namespace vivace::load
