#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace vivace {
namespace {

struct Outcome {
  std::string text;
  int matched;
};

Outcome Feed(std::vector<std::string> stops, bool include, const std::vector<std::string>& deltas) {
  StopMatcher matcher(std::move(stops), include);
  Outcome outcome{};
  for (const std::string& delta : deltas) outcome.text += matcher.Push(delta);
  outcome.text += matcher.Finish();
  outcome.matched = matcher.matched();
  return outcome;
}

TEST(StopMatcher, SpansTokens) {
  StopMatcher matcher({"lo he"}, false);
  EXPECT_EQ(matcher.Push(" hello"), " hel");
  EXPECT_EQ(matcher.Push(" hello"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Push(" hello"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, CanIncludeTheStop) {
  EXPECT_EQ(Feed({"lo he"}, true, {" hello", " hello"}).text, " hello he");
}

TEST(StopMatcher, FlushesWhatNeverMatched) {
  const Outcome outcome = Feed({"hello hello hello hello!"}, false, {" hello", " hello", " hello"});
  EXPECT_EQ(outcome.text, " hello hello hello");
  EXPECT_EQ(outcome.matched, -1);
}

TEST(StopMatcher, EarliestEndThenLongest) {
  EXPECT_EQ(Feed({"abcd", "bc"}, false, {"xabcd"}).text, "xa");
  EXPECT_EQ(Feed({"bc", "abc"}, false, {"xabc"}).text, "x");
  EXPECT_EQ(Feed({"bc", "abc"}, false, {"xabc"}).matched, 1);
  EXPECT_EQ(Feed({"", "c"}, false, {"abcd"}).text, "ab");
}

TEST(StopMatcher, MinTokensPassesAMatchOver) {
  StopMatcher matcher({"aa"}, false);
  EXPECT_EQ(matcher.Push("xaa", false), "xa");  // the last a may begin a later match
  EXPECT_EQ(matcher.Push("b"), "ab");
  EXPECT_EQ(matcher.Push("aa"), "");
  EXPECT_TRUE(matcher.stopped());

  StopMatcher begins({"stop"}, false);
  EXPECT_EQ(begins.Push("a st", false), "a ");
  EXPECT_EQ(begins.Push("op b"), "");  // it ends after the grace
  EXPECT_TRUE(begins.stopped());
}

TEST(StopMatcher, CutsOnlyBetweenCharacters) {
  StopMatcher matcher({"é!"}, false);
  EXPECT_EQ(matcher.Push("aé"), "a");
  EXPECT_EQ(matcher.Push("ê"), "éê");
}

// By hand: at each end position in turn, the longest stop string that ends there.
Outcome Reference(const std::vector<std::string>& stops, bool include, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    int best = -1;
    for (size_t i = 0; i < stops.size(); ++i) {
      const bool here = !stops[i].empty() && text.substr(0, end).ends_with(stops[i]);
      if (here && (best < 0 || stops[i].size() > stops[best].size())) best = static_cast<int>(i);
    }
    if (best >= 0) return {text.substr(0, include ? end : end - stops[best].size()), best};
  }
  return {text, -1};
}

TEST(StopMatcher, AsTheReferenceHoweverTheTextIsCut) {
  std::mt19937 rng(5);
  const auto random_text = [&](size_t most) {
    std::string text(rng() % (most + 1), 'a');
    for (char& c : text) c = static_cast<char>('a' + rng() % 2);
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(1 + rng() % 4);
    for (std::string& stop : stops) stop = random_text(7);
    const std::string text = random_text(24);
    std::vector<std::string> deltas;
    for (size_t pos = 0; pos < text.size();) {
      deltas.push_back(text.substr(pos, 1 + rng() % 5));
      pos += deltas.back().size();
    }
    const bool include = rng() % 2 == 0;
    const Outcome wanted = Reference(stops, include, text);
    const Outcome got = Feed(stops, include, deltas);
    ASSERT_EQ(got.text, wanted.text);
    ASSERT_EQ(got.matched, wanted.matched);
  }
}

TEST(StopMatcher, HoldsBackNoMoreThanMayMatch) {
  std::string stop(255, 'a');
  stop += 'b';
  StopMatcher matcher({stop}, false);
  size_t out = 0;
  for (int i = 0; i < 4000; ++i) out += matcher.Push("a").size();
  EXPECT_EQ(out, 4000u - 255);
}

}  // namespace
}  // namespace vivace
