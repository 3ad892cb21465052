#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace vivace {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include_stop)
    : include_stop_(include_stop) {
  patterns_.reserve(stops.size());
  for (std::string& stop : stops) patterns_.push_back(MakePattern(std::move(stop)));
}

StopMatcher::Pattern StopMatcher::MakePattern(std::string text) {
  Pattern pattern;
  pattern.fallback.assign(text.size() + 1, 0);
  for (size_t i = 1; i < text.size(); ++i) {
    uint32_t border = pattern.fallback[i];
    while (border > 0 && text[border] != text[i]) border = pattern.fallback[border];
    pattern.fallback[i + 1] = text[border] == text[i] ? border + 1 : 0;
  }
  pattern.text = std::move(text);
  return pattern;
}

// Whether `byte` completes the pattern.
bool StopMatcher::Advance(Pattern* pattern, char byte) {
  if (pattern->text.empty()) return false;
  uint32_t length = pattern->length;
  if (length == pattern->text.size()) length = pattern->fallback[length];
  while (length > 0 && pattern->text[length] != byte) length = pattern->fallback[length];
  if (pattern->text[length] == byte) ++length;
  pattern->length = length;
  return length == pattern->text.size();
}

std::string_view StopMatcher::Push(std::string_view text, bool may_stop) {
  out_.clear();
  if (stopped()) return out_;
  const size_t before = held_.size();
  held_.append(text);
  for (size_t i = before; i < held_.size(); ++i) {
    const Pattern* longest = nullptr;
    for (Pattern& pattern : patterns_) {
      const bool complete = Advance(&pattern, held_[i]) && may_stop;
      if (complete && (longest == nullptr || pattern.text.size() > longest->text.size())) {
        longest = &pattern;
      }
    }
    if (longest != nullptr) {
      Stop(static_cast<size_t>(longest - patterns_.data()), i + 1);
      return out_;
    }
  }
  size_t hold = 0;
  for (const Pattern& pattern : patterns_) {
    // A complete match that was passed over counts only by what it may still begin.
    const uint32_t length = pattern.length;
    hold =
        std::max<size_t>(hold, length == pattern.text.size() ? pattern.fallback[length] : length);
  }
  const size_t safe = held_.size() - hold;
  out_.assign(held_, 0, safe);
  held_.erase(0, safe);
  return out_;
}

// held_[.., end) ends with the stop string `match`.
void StopMatcher::Stop(size_t match, size_t end) {
  matched_ = static_cast<int>(match);
  out_.assign(held_, 0, include_stop_ ? end : end - patterns_[match].text.size());
  held_.clear();
}

std::string_view StopMatcher::Finish() {
  out_ = std::exchange(held_, {});
  for (Pattern& pattern : patterns_) pattern.length = 0;
  return out_;
}

}  // namespace vivace
