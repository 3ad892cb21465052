#include "grammar/gbnf.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "base/utf8.h"
#include "grammar/grammar_testing.h"

namespace vivace::grammar {
namespace {

using testing::InProcess;
using testing::Spec;

GrammarSpec Gbnf(std::string_view text) {
  return Spec(GrammarSpec::Kind::kEbnf, std::string(text));
}

// Whether the grammar lets `output` be written, byte by byte, and end.
bool Takes(const CompiledGrammar& grammar, std::string_view output) {
  const auto constraint = grammar.NewConstraint({});
  for (const char c : output) {
    if (!constraint->Accept(static_cast<unsigned char>(c))) return false;
  }
  return constraint->Done() || constraint->Accept(testing::kEos);
}

struct Case {
  const char* grammar;
  std::vector<std::string> taken, refused;
};

void Check(const Case& c) {
  SCOPED_TRACE(c.grammar);
  const auto grammar = testing::Compiled(Gbnf(c.grammar));
  ASSERT_NE(grammar, nullptr);
  for (const std::string& output : c.taken) EXPECT_TRUE(Takes(*grammar, output)) << output;
  for (const std::string& output : c.refused) EXPECT_FALSE(Takes(*grammar, output)) << output;
}

TEST(Gbnf, MeansWhatItMeansToLlamaCpp) {
  const Case cases[] = {
      {"root ::= \"a\" space \"b\"\nspace ::= | \" \" | \"\\n\"{1,2} [ \\t]{0,3}\n",
       {"ab", "a b", "a\nb", "a\n\n\t b"},
       {"a  b", "a\n\n\nb"}},
      {"root ::= \"a\" ( \"b\" | )", {"a", "ab"}, {"b"}},
      {"root ::= \"a\" ( | \"b\" ) ( | ) ()", {"a", "ab"}, {"abb"}},
      {"root ::= \"a\" none \"b\"\nnone ::=\n", {"ab"}, {"a"}},
      {"none ::=   # says nothing\nroot ::= \"a\" none | # or\n \"b\"", {"a", "b"}, {"ab"}},
      {"root ::= ( \"x\" | ) \"y\" |\n", {"xy", "y", ""}, {"x"}},
      {"root ::= \"<\" .{1,2} \">\"", {"<a>", "<\n>", "<é.>"}, {"<>", "<abc>"}},
      {"root ::= ..a.b\na ::= \"a\"\nb ::= \"b\"", {"xyazb", "..a.b"}, {"ab"}},
      {"root ::= .*", {"", "a\nb"}, {}},
      // A name that has a dot is one.
      {"root ::= a.b\na.b ::= \"c\"", {"c"}, {"a"}},
      {R"(root ::= "\[\]\-" [\[\]\-a])", {"[]-[", "[]-]", "[]--", "[]-a"}, {"[]-b"}},
      {R"(root ::= "\x41B" [^\x7F\x00-\x1Fa] [\x30AF])", {"ABz0", "AB0F", "ABzA"}, {"ABaA"}},
      {"root ::= \"a\nb\" [\nc]", {"a\nb\n", "a\nbc"}, {"a b c"}},
      {"root ::= [a-c]+? \"d\"*? (\"e\"?? )\"f\"++", {"f", "abdeff"}, {"e", "aee"}},
      {"root ::= 3d true Token\n3d ::= \"3\"\ntrue ::= \"t\"\nToken ::= \"T\" ( | \"!\")",
       {"3tT", "3tT!"},
       {"3t"}}};
  for (const Case& c : cases) Check(c);
}

// What xgrammar reads the same stays as it is.
TEST(Gbnf, TheRestStaysByteForByte) {
  for (const char* text : {"",
                           "root ::= (\"a\" | b)* [^\"\\\\\\n-z] {2,5} # | ( .\nb ::= \"\\\"|.\" "
                           "(\"c\" \"d\"){1,} ()\n",
                           "root ::= TagDispatch((\"<a>\", x), loop_after_dispatch=false, "
                           "excludes=(\"b\",)) (= \"c\")\n"
                           "x[max_tokens=10, capture=\"n\"] ::= Token(1, 2) Regex(\"a|.\")",
                           "root ::= a.b [\\u0041-\\U0001F600]\r\na.b ::= \"\\x41\\x0a\"",
                           "root ::= Regex(\"\\[a\\]\")", "\"open \\", "[a\\", "root ::= {",
                           "root ::= \"a\" | <[12]>"}) {
    EXPECT_EQ(GbnfToEbnf(text), text);
  }
}

// Whatever the text: what is written needs no rewriting.
TEST(Gbnf, WhatIsWrittenStays) {
  constexpr std::string_view kParts[] = {"root", "a",  "3d", "true", "::=", " ", "\n", "\r\n",
                                         "|",    "(",  ")",  "(=",   "*",   "+", "?",  "{",
                                         "}",    "2,", ".",  "\"",   "[",   "]", "\\", "\\x41",
                                         "B",    "-",  "^",  "#",    "<",   "é", ",",  "_"};
  std::minstd_rand random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t parts = random() % 24; parts > 0; --parts) {
      text += kParts[random() % std::size(kParts)];
    }
    const std::string once = GbnfToEbnf(text);
    ASSERT_EQ(GbnfToEbnf(once), once) << text;
    ASSERT_LT(once.size(), 40 * text.size() + 8) << text;
  }
}

TEST(Gbnf, ErrorsNameTheClientsLine) {
  const auto refused = InProcess().Compile(Gbnf("root ::= | a\n\na ::= . b |\n\nc ::= nothing\n"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("line 3"), std::string::npos) << refused.error().message;
}

// In the manner of llama.cpp's json_schema_to_grammar.
TEST(Gbnf, AGrammarMadeOfASchema) {
  Check({R"gbnf(alternative-0 ::= "\"a\"" space
boolean ::= ("true" | "false") space
char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})
decimal-part ::= [0-9]{1,16}
integral-part ::= [0] | [1-9] [0-9]{0,15}
n ::= ("-"? integral-part) ("." decimal-part)? ([eE] [-+]? integral-part)? space
n-kv ::= "\"n\"" space ":" space n
n-rest ::= ( "," space on-kv )?
null ::= "null" space
on ::= boolean | null
on-kv ::= "\"on\"" space ":" space on
root ::= "{" space  (n-kv n-rest | on-kv )? "}" space | "[" space (string ("," space string){0,2})? "]" space
space ::= | " " | "\n"{1,2} [ \t]{0,20}
string ::= "\"" char* "\"" space
)gbnf",
         {R"({})", R"({"n":-1.5e3})", "{ \"n\": 0,\n\n  \"on\": true }\n", R"(["a\u00e9","\n"])"},
         {R"({"n":01})", R"({"x":1})", R"(["a","b","c","d"])", "[\"\x01\"]", "{}  "}});
}

// In the manner of llama.cpp's grammar of JSON.
TEST(Gbnf, AGrammarOfJson) {
  const char* json = R"gbnf(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";
  Check({json, {R"({"a": [1, 2.5, {"b":null}], "c":"\u0041 é"} )", "{\n}"}, {"[]", R"({"a":01})"}});
  const auto grammar = testing::Compiled(Gbnf(json));
  ASSERT_NE(grammar, nullptr);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto walk =
        testing::RandomWalk(*grammar, *testing::JsonTokenizer(), testing::kLogits, seed, 60);
    // [^...] takes in surrogates, which a vocabulary of bytes can spell.
    EXPECT_TRUE(testing::Parse(walk.text) || !utf8::IsValid(walk.text)) << walk.text;
  }
}

// What docs/structured.md says is refused, and what it says to write.
TEST(Gbnf, StackedCountsNeedParentheses) {
  for (const char* stacked : {R"("a"{2}{3})", "[a]{2}*", R"(("a" | "b"){2}?)"}) {
    EXPECT_FALSE(testing::InProcess().Compile(Gbnf(std::string("root ::= ") + stacked))) << stacked;
  }
  const auto grammar = testing::Compiled(Gbnf(R"(root ::= ("a"{2}){3})"));
  ASSERT_NE(grammar, nullptr);
  EXPECT_TRUE(Takes(*grammar, "aaaaaa"));
  EXPECT_FALSE(Takes(*grammar, "aaaaa"));
}

TEST(Gbnf, InAStructuralTagToo) {
  const auto grammar = testing::Compiled(
      Spec(GrammarSpec::Kind::kStructural,
           R"({"format":{"type":"sequence","elements":[{"type":"const_string","value":"<"},
               {"type":"grammar","grammar":"root ::= | \"a\" ."}]}})"));
  ASSERT_NE(grammar, nullptr);
  EXPECT_TRUE(Takes(*grammar, "<"));
  EXPECT_TRUE(Takes(*grammar, "<az"));
  EXPECT_FALSE(Takes(*grammar, "<b"));
}

}  // namespace
}  // namespace vivace::grammar
