#include "grammar/pattern.h"

#include <gmock/gmock.h>

#include <string>

#include "grammar/ebnf.h"

namespace vivace::grammar {
namespace {

TEST(CodePoints, AreSets) {
  CodePoints set = {{'a', 'c'}, {'d', 'f'}, {'x', 'x'}};
  EXPECT_EQ(set.ranges().size(), 2u);
  EXPECT_EQ(set.ToClass(), "[a-fx]");
  EXPECT_EQ(set.Minus({{'b', 'x'}}).ToClass(), "[a]");
  EXPECT_EQ(set.Complement().Complement().ranges(), set.ranges());
  EXPECT_EQ(CodePoints::All().Minus({{1, 0xFFFF}}).ToClass(), "[\\U00010000-\\U0010FFFF]");
}

std::string Expression(std::string_view text, Spelling spelling = Spelling::kRaw) {
  const auto pattern = ParsePattern(text, "pattern");
  return pattern ? ToExpression(*pattern, spelling) : "refused: " + pattern.error().message;
}

TEST(Pattern, IsReadAsWritten) {
  EXPECT_EQ(Expression("^a|b$"), "([a] | [b])");
  EXPECT_EQ(Expression("[a-c\\d]{2,3}?"), "([0-9a-c]){2,3}");
  EXPECT_EQ(Expression("(?:ab)+(?<n>c)?"), "((([a] [b]))+ ([c])?)");
  EXPECT_EQ(Expression(""), "\"\"");
  EXPECT_EQ(Expression("a{0}"), "\"\"");
  EXPECT_EQ(Expression("\\x41\\u0042\\u{43}\\."), "([A] [B] [C] [\\u002E])");
}

TEST(Pattern, IsSpelledAsJson) {
  EXPECT_EQ(Expression("\"", Spelling::kJsonString), "\"\\\\\\\"\"");
  EXPECT_EQ(Expression("[\\n\"a]", Spelling::kJsonString), "([a] | \"\\\\n\" | \"\\\\\\\"\")");
}

TEST(Pattern, HasLengths) {
  const auto lengths = [](std::string_view text) { return LengthsOf(*ParsePattern(text, "")); };
  EXPECT_EQ(lengths("ab?(c|de){2,4}").min, 3);
  EXPECT_EQ(lengths("ab?(c|de){2,4}").max, 10);
  EXPECT_EQ(lengths("a*").max, kUnbounded);
}

TEST(Pattern, RefusesWhatIsMalformedOrBeyondGrammars) {
  for (const char* text : {"foo**",   "(",           ")",
                           "a)",      "[",           "[]",
                           "*a",      "a{2,1}",      "a{9999999999}",
                           "(?=a)",   "(?<!a)b",     "\\1",
                           "\\bword", "\\p{L}",      "a$b",
                           "b^a",     "[z-a]",       "\\",
                           "(?i)a",   "[[:alpha:]]", "\\ud800",
                           "a{",      "(a|b",        "^*a",
                           "(?<=x)*", "^(a+)\\1$",   "^((a{1,999}){1,999}){1,999}$"}) {
    EXPECT_FALSE(ParsePattern(text, "pattern")) << text;
  }
  EXPECT_FALSE(ParsePattern("\xFF", "pattern"));
  EXPECT_FALSE(ParsePattern(std::string(100'000, 'a'), "pattern"));
  EXPECT_FALSE(ParsePattern(std::string(1'000, '('), "pattern"));
}

}  // namespace
}  // namespace vivace::grammar
