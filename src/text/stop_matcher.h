// StopMatcher: cuts a stream of text at the first stop string.
//
// Text that could still become a stop string is held back, so no part of one is ever let out. The
// match that ends first wins; of those that end together, the longest. Works on bytes; if text and
// stop strings are UTF-8, so is what comes out. Linear in the text, times the number of strings.
// Owned by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vivace {

class StopMatcher {
 public:
  // Empty stop strings match nothing. `include_stop`: a match lets the stop string itself out too.
  StopMatcher(std::vector<std::string> stops, bool include_stop);

  // The text that is now safe to let out; holds until the next call. With `may_stop` false a stop
  // string that ends in this text is passed over (min_tokens), though one may begin in it.
  // After a stop everything further is swallowed.
  std::string_view Push(std::string_view text, bool may_stop = true);
  // The end of the text: what was held back.
  std::string_view Finish();

  bool stopped() const { return matched_ >= 0; }
  int matched() const { return matched_; }  // index of the stop string, or -1

 private:
  // One stop string and how much of it the text ends with (Knuth, Morris, Pratt).
  struct Pattern {
    std::string text;
    std::vector<uint32_t> fallback;  // longest border of each prefix, by its length
    uint32_t length = 0;             // matched so far
  };

  static Pattern MakePattern(std::string text);
  static bool Advance(Pattern* pattern, char byte);
  void Stop(size_t match, size_t end);

  std::vector<Pattern> patterns_;
  bool include_stop_;
  int matched_ = -1;
  std::string held_;  // text that was not let out yet
  std::string out_;
};

}  // namespace vivace
