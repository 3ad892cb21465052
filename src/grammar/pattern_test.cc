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

TEST(Pattern, RepeatsOfWhatMayBeEmptyAreRewritten) {
  EXPECT_EQ(Expression("(a*)*b"), "(([a])* [b])");
  EXPECT_EQ(Expression("(|a)+"), "([a])*");
  EXPECT_EQ(Expression("(a?b?)*"), "(([a] | [b]))*");
  EXPECT_EQ(Expression("(a?c){1,3}|(a?b?){1}"), "(((([a])? [c])){1,3} | ((([a] ([b])?) | [b]))?)");
  EXPECT_EQ(Expression("((a*)*)*"), "([a])*");
  EXPECT_EQ(Expression("(()|(){2})*"), "\"\"");
  EXPECT_EQ(LengthsOf(*ParsePattern("(a?b?){2,3}", "")).max, 6);
  std::string nested = "a";
  for (int i = 0; i < 60; ++i) nested = "(" + nested + "?)*";
  EXPECT_TRUE(ParsePattern(nested, "")) << "grows with each level";
  std::string row = "(";
  for (int i = 0; i < 1'000; ++i) row += "a?";
  EXPECT_TRUE(ParsePattern(row + ")*", ""));
  EXPECT_FALSE(ParsePattern(row + "){2,9}", ""));
}

TEST(Pattern, RepeatsThatOverlapThemselvesAreOneAutomaton) {
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  for (const char* text :
       {"([a-z]+,? ?){1,50}", "(\\d{1,3},?)+", "(a|ba|aa)*", "(a?b?){1,3}", "([a-z]+ ?){130,}"})
    EXPECT_THAT(Expression(text), StartsWith("Regex(")) << text;
  for (const char* text :
       {"([a-z]+, ){1,50}", "(ab|c){2,9}", "[a-z]{1,999}", "(\"|a)*", "([^\"\\\\]|\\\\.)*"})
    EXPECT_THAT(Expression(text), ::testing::Not(HasSubstr("Regex("))) << text;
  EXPECT_EQ(Expression("(a|aa){2,300}"),
            "Regex(\"(?:(?:(?:[a])|(?:(?:[a])(?:[a]))){2,128}(?:(?:[a])|(?:(?:[a])(?:[a]))){0,128}"
            "(?:(?:[a])|(?:(?:[a])(?:[a]))){0,44})\")");
  EXPECT_THAT(Expression("((a{1,100}){1,100}){1,100}"), HasSubstr("too many ways"));
  EXPECT_THAT(Expression("([^x]+,?){1,900}"), HasSubstr("too many ways"));
}

TEST(Pattern, CharactersByNumberAndProperty) {
  EXPECT_EQ(Expression("\\x00\\0\\cJ"), "([\\u0000] [\\u0000] [\\u000A])");
  EXPECT_EQ(Expression("[\\0a]", Spelling::kJsonString), "([a] | \"\\\\u0000\")");
  const auto set = [](const char* text) { return ParsePattern(text, "")->set; };
  const auto has = [&](const char* text, char32_t code) {
    return !set(text).Intersect({{code, code}}).empty();
  };
  EXPECT_TRUE(has("\\p{L}", U'é') && has("\\p{Lu}", 'A') && has("\\p{Script=Greek}", U'λ'));
  EXPECT_TRUE(has("\\pL", 'x') && has("[\\p{Nd}_]", '_') && has("\\P{L}", '1'));
  EXPECT_FALSE(has("\\p{L}", '1') || has("\\p{Lu}", 'a') || has("\\P{L}", U'é'));
}

TEST(Pattern, SaysWhatCannotBeHeldToAndWhatToWrite) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& c :
       std::initializer_list<Case>{{"ab(?=c)", "'(?=' (at byte 2) looks ahead"},
                                   {"(?!c)a", "'(?!' (at byte 0) looks ahead"},
                                   {"a(?<!b)c", "'(?<!' (at byte 1) looks behind"},
                                   {"(a)\\1", "'\\1' (at byte 3) refers back to a group"},
                                   {"(?P<n>a)(?P=n)", "refers back to a group"},
                                   {"(?<n>a)\\k<n>", "refers back to a group"},
                                   {"\\bword", "'\\b' (at byte 0) asks whether a word ends here"},
                                   {"a\\Z", "leave it out"},
                                   {"(?i)a", "[aA]"},
                                   {"\\p{Nope}", "names no category"},
                                   {"\\q", "no escape"}}) {
    const auto refused = ParsePattern(c.text, "pattern");
    ASSERT_FALSE(refused) << c.text;
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr(c.says)) << c.text;
  }
}

TEST(Pattern, RefusesWhatIsMalformedOrBeyondGrammars) {
  for (const char* text : {"foo**",   "(",           ")",
                           "a)",      "[",           "[]",
                           "*a",      "a{2,1}",      "a{9999999999}",
                           "(?=a)",   "(?<!a)b",     "\\1",
                           "\\bword", "\\p{Z",       "a$b",
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
