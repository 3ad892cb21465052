#include "text/regex_syntax.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace vivace {
namespace {

std::string Verdict(std::string_view pattern) {
  const Status status = CheckRegex(pattern);
  return status ? "ok" : status.error().reason;
}

TEST(RegexSyntax, RealPatternsPass) {
  for (const char* pattern :
       {R"('s|'t| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
        R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n])",
        R"((?<name>a)(?=b)(?<!c)(?>d)|[]a-z&&[^q]]{2,}|x{,3}|a{|{})", R"([一-龥぀-ゟ゠-ヿ]+)",
        R"(\p{^Lu}|\P{M}|\x{20}|\[\()", ""}) {
    EXPECT_EQ(Verdict(pattern), "ok") << pattern;
  }
}

TEST(RegexSyntax, BrokenOnes) {
  for (const char* pattern : {"(a", "a)", "*a", "(+)", "a|*", "[a", "[a[b]", "\\", "a\\", "[\\]",
                              "\\p{L", "\\pL", "\\p{}", "(?", "(?#a", "a{3,1}", "(?:", "()("}) {
    EXPECT_EQ(Verdict(pattern), "bad_regex") << pattern;
  }
}

TEST(RegexSyntax, Limits) {
  EXPECT_EQ(Verdict("(?:(?:a{1,1000}){1,1000}){1,1000}"), "regex_limit");
  EXPECT_EQ(Verdict("a{100000}"), "ok");
  EXPECT_EQ(Verdict("a{100001}"), "regex_limit");
  EXPECT_EQ(Verdict("a{99999999999999999999999999}"), "regex_limit");
  const auto nested = [](size_t depth) {
    return std::string(depth, '(') + "a" + std::string(depth, ')');
  };
  EXPECT_EQ(Verdict(nested(limits::kMaxRegexDepth)), "ok");
  EXPECT_EQ(Verdict(nested(limits::kMaxRegexDepth + 1)), "regex_limit");
  EXPECT_EQ(Verdict(std::string(limits::kMaxRegexBytes, 'a')), "ok");
  EXPECT_EQ(Verdict(std::string(limits::kMaxRegexBytes + 1, 'a')), "regex_limit");
}

}  // namespace
}  // namespace vivace
