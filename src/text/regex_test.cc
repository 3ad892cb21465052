#include "text/regex.h"

#include <gmock/gmock.h>
#include <time.h>

#include <string>
#include <vector>

#include "base/limits.h"

namespace vivace {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::Compile(pattern);
  if (!regex) return {regex.error().reason};
  Regex::Matcher matcher(**regex);
  matcher.Reset(text);
  std::vector<std::string> found;
  while (const auto match = matcher.Next()) {
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
  }
  return found;
}

TEST(Regex, TheFirstBranchThatWorks) {
  EXPECT_THAT(Matches("a|ab", "abab"), ElementsAre("a", "a"));
  EXPECT_THAT(Matches("(?:a|ab)c", "abc"), ElementsAre("abc"));
  EXPECT_THAT(Matches("a*", "baac"), ElementsAre("", "aa", ""));
  EXPECT_THAT(Matches(R"(\s+(?!\S)|\s+)", "a   b "), ElementsAre("  ", " ", " "));
  EXPECT_THAT(Matches("a{2}b?", "aaab"), ElementsAre("aa"));
  EXPECT_THAT(Matches("a{1,2}+", "aaaaa"), ElementsAre("aaaaa"));  // Ruby repeats the repeat
  EXPECT_THAT(Matches("a++a|b", "aab"), ElementsAre("b"));
  EXPECT_THAT(Matches("a+?b?", "aab"), ElementsAre("a", "ab"));
  EXPECT_THAT(Matches("(?i:'s)x", "'\u017fx'SX'Sx"), ElementsAre("'\u017fx", "'Sx"));
}

TEST(Regex, Classes) {
  EXPECT_THAT(Matches(R"([^\r\n\p{L}\p{N}]?\p{L}+)", "a1 b!é"), ElementsAre("a", " b", "!é"));
  EXPECT_THAT(Matches("[a-c&&[^b]]+", "abcca"), ElementsAre("a", "cca"));
  EXPECT_THAT(Matches(R"([\x{4e00}-\u9fff]+|\p{^Lu})", "A漢字b"), ElementsAre("漢字", "b"));
  EXPECT_THAT(Matches(R"([\]\-a]+)", "a]-b"), ElementsAre("a]-"));
}

TEST(Regex, WhatIsRefused) {
  for (const char* pattern : {R"((a)\1)", "(?>a|b)", "(?<=ab)c", "(a?)*", "(?=a*b)a", "(?:ab)++",
                              R"(\X)", R"(\p{Nonesuch})", "[[:alpha:]]", "(?i:é)", R"(\G)"}) {
    EXPECT_THAT(Matches(pattern, ""), ElementsAre("unsupported_regex")) << pattern;
  }
  EXPECT_THAT(Matches("(a", ""), ElementsAre("bad_regex"));
  EXPECT_THAT(Matches("a{" + std::to_string(limits::kMaxRegexProgram + 2) + "}", ""),
              ElementsAre("regex_limit"));
}

double Seconds(std::string_view pattern, const std::string& text) {
  timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  Matches(pattern, text);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - begin.tv_sec) +
         static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

TEST(Regex, LinearOnWhatIsWorstForBacktracking) {
  for (const char* pattern : {"(a+)+$", "(a|aa)+$", R"(((?=[\p{L}])([^A-Z]))+)", "a*b|a",
                              R"(\s*[\r\n]+|\s+(?!\S)|\s+)", "a++b|a", "(?:a*a*a*)b", "[^x]*x|a"}) {
    ASSERT_TRUE(Regex::Compile(pattern)) << pattern;
    for (const char unit : {'a', ' '}) {
      const double small = Seconds(pattern, std::string(1 << 13, unit) + "!");
      const double large = Seconds(pattern, std::string(1 << 18, unit) + "!");
      EXPECT_LT(large, 160 * std::max(small, 1e-5)) << pattern << " on '" << unit << "'";
    }
  }
}

}  // namespace
}  // namespace vivace
