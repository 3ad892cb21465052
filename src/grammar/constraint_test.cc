#include "grammar/constraint.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <regex>
#include <string>

#include "base/clock.h"
#include "grammar/grammar_testing.h"

namespace vivace::grammar {
namespace {

using testing::Compiled;
using testing::DrawAffordable;
using testing::InProcess;
using testing::JsonTokenizer;
using testing::kEos;
using testing::kLogits;
using testing::Parse;
using testing::RandomWalk;
using testing::Schema;
using testing::Spec;
using testing::TokensOf;
using Kind = GrammarSpec::Kind;

// What may be drawn; with `affordable`, only what leaves room for the end.
std::vector<TokenId> Allowed(TokenConstraint* constraint, int32_t remaining,
                             bool affordable = false) {
  std::vector<uint32_t> mask(MaskWords(kLogits));
  EXPECT_TRUE(constraint->FillMask(remaining, mask));
  auto allowed = TokensOf(mask, kLogits);
  if (affordable) {
    std::erase_if(allowed, [&](TokenId token) {
      auto scratch = mask;
      return !constraint->Affords(token, remaining, scratch);
    });
  }
  return allowed;
}

TEST(GrammarConstraint, AllowsWhatTheGrammarDoes) {
  const auto grammar = Compiled(Spec(Kind::kRegex, "[ab]c?"));
  EXPECT_EQ(grammar->shortest_tokens(), 1);
  const auto constraint = grammar->NewConstraint({});
  // "abc" and "na" would go too far; nothing ends the empty output.
  EXPECT_THAT(Allowed(constraint.get(), 100), ::testing::ElementsAre('a', 'b'));
  EXPECT_FALSE(constraint->Done());
  EXPECT_FALSE(constraint->Accept('c'));
  ASSERT_TRUE(constraint->Accept('b'));
  EXPECT_THAT(Allowed(constraint.get(), 100), ::testing::ElementsAre('c', kEos));
  ASSERT_TRUE(constraint->Accept('c'));
  EXPECT_TRUE(constraint->Done());
  EXPECT_THAT(Allowed(constraint.get(), 100), ::testing::ElementsAre(kEos));
  ASSERT_TRUE(constraint->Accept(kEos));
  EXPECT_TRUE(constraint->Done());
  EXPECT_FALSE(constraint->steered());
}

TEST(GrammarConstraint, ControlTokensAreNoText) {
  const auto grammar = Compiled(Spec(Kind::kRegex, "[^x]*"));
  const auto allowed = Allowed(grammar->NewConstraint({}).get(), 1000);
  EXPECT_THAT(allowed, ::testing::Not(::testing::Contains(260)));  // <bos>
  EXPECT_THAT(allowed, ::testing::Contains('<'));
  EXPECT_LT(allowed.back(), static_cast<TokenId>(JsonTokenizer()->vocab_size()));
}

TEST(GrammarConstraint, ChoicesAndGrammars) {
  GrammarSpec choice;
  choice.kind = Kind::kChoice;
  choice.choices = {"yes", "no \"quoted\" \\ \n", "語"};
  const auto choices = Compiled(choice);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto walk = RandomWalk(*choices, *JsonTokenizer(), kLogits, seed, 100);
    EXPECT_THAT(choice.choices, ::testing::Contains(walk.text));
  }
  const auto sum = Compiled(Spec(Kind::kEbnf, R"gbnf(root ::= term ("+" term)*
term ::= [0-9]+ | "(" root ")"   # a comment
)gbnf"));
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto walk = RandomWalk(*sum, *JsonTokenizer(), kLogits, seed, 20, '(');
    EXPECT_NE(walk.text.back(), '+') << walk.text;
    EXPECT_EQ(std::ranges::count(walk.text, '('), std::ranges::count(walk.text, ')')) << walk.text;
  }
}

TEST(GrammarConstraint, StructuralTags) {
  const auto grammar = Compiled(Spec(Kind::kStructural, R"({"format":{"type":"triggered_tags",
    "triggers":["<f>"],"tags":[{"type":"tag","begin":"<f>","content":{"type":"json_schema",
    "json_schema":{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":3}},
    "required":["a"]}},"end":"</f>"}]}})"));
  const auto constraint = grammar->NewConstraint({});
  for (const char c : std::string("hello <f>{\"a\":")) ASSERT_TRUE(constraint->Accept(c)) << c;
  EXPECT_THAT(Allowed(constraint.get(), 100), ::testing::ElementsAre(' ', '1', '2', '3'));
  // Free text may end where it stands, a call may not.
  EXPECT_EQ(grammar->shortest_tokens(), 0);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto walk = RandomWalk(*grammar, *JsonTokenizer(), kLogits, seed, 40, "<f>{"[seed % 4]);
    const size_t open = walk.text.rfind("<f>"), close = walk.text.rfind("</f>");
    EXPECT_TRUE(open == std::string::npos || (close != std::string::npos && close > open))
        << walk.text;
  }
  const auto bad = InProcess().Compile(Spec(Kind::kStructural, R"({"format":{"type":"json_schema",
    "json_schema":{"type":"strin"}}})"));
  EXPECT_FALSE(bad);
}

TEST(GrammarConstraint, ControlTokensByTheirIds) {
  const auto grammar = Compiled(Spec(Kind::kStructural, R"({"format":{"type":"sequence","elements":[
    {"type":"const_string","value":"a"},{"type":"token","token":260},
    {"type":"const_string","value":"b"}]}})"));
  ASSERT_NE(grammar, nullptr);
  const auto constraint = grammar->NewConstraint({});
  ASSERT_TRUE(constraint->Accept('a'));
  EXPECT_THAT(Allowed(constraint.get(), 100), ::testing::ElementsAre(260));
  ASSERT_TRUE(constraint->Accept(260));
  ASSERT_TRUE(constraint->Accept('b'));
  EXPECT_THAT(Allowed(constraint.get(), 100), ::testing::ElementsAre(kEos));
  ASSERT_TRUE(constraint->Accept(kEos));
  EXPECT_TRUE(constraint->Done());
}

// What stands between control tokens is led to its end as well.
TEST(GrammarConstraint, EndsWithinItsTokensWhereTokensAreNamed) {
  const std::string call = R"({"type":"token","token":260},{"type":"json_schema","json_schema":
      {"type":"array","items":{"type":"string","minLength":2},"minItems":1}},
      {"type":"token","token":260})";
  // Alone, and behind free tokens.
  for (const auto& [before, shortest] : {std::pair<std::string, int32_t>("", 8),
                                         {R"({"type":"any_tokens","exclude_tokens":[260]},)", 8}}) {
    const auto grammar = Compiled(Spec(
        Kind::kStructural, R"({"format":{"type":"sequence","elements":[)" + before + call + "]}}"));
    ASSERT_NE(grammar, nullptr);
    EXPECT_GT(grammar->shortest_tokens(), 3);
    EXPECT_LE(grammar->shortest_tokens(), shortest);
    int steered = 0;
    for (int32_t most = grammar->shortest_tokens(); most <= 30; most += 2) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        const auto walk =
            RandomWalk(*grammar, *JsonTokenizer(), kLogits, seed, most, seed % 2 == 0 ? '"' : ',');
        EXPECT_TRUE(walk.ended) << "within " << most << ": " << walk.text;
        steered += walk.steered ? 1 : 0;
      }
    }
    EXPECT_GT(steered, 0);
  }
}

TEST(GrammarConstraint, GrammarsThatNameTokensMustEndToo) {
  const auto endless = InProcess().Compile(Spec(Kind::kEbnf, "root ::= Token(260) root\n"));
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().message, ::testing::HasSubstr("never ends"));
}

// Every limit from the shortest output on gives a complete one.
TEST(GrammarConstraint, AlwaysEndsWithinItsTokens) {
  const std::string schemas[] = {
      R"({"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array",
          "items":{"type":"string"}},"size":{"type":"number"}},"required":["name","tags"]})",
      R"({"anyOf":[{"type":"null"},{"type":"object","properties":{"first":{"type":"string",
          "minLength":8},"second":{"type":"integer","minimum":100000}},
          "required":["first","second"]}]})",
      R"({"type":"array","items":{"type":"array","items":{"type":"string","minLength":2},
          "minItems":2},"minItems":1})",
      R"({})",
      R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"object",
          "properties":{"k":{"enum":["alpha","beta"]}},"required":["k"]}}})",
      R"({"type":"string","format":"date-time"})",
      R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},
          "next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"]}},
          "$ref":"#/$defs/n"})"};
  const int favours[] = {-1, '[', '{', ',', '"'};
  for (const std::string& schema : schemas) {
    const auto grammar = Compiled(Schema(schema));
    ASSERT_NE(grammar, nullptr);
    for (int32_t most = grammar->shortest_tokens(); most <= 40; most += 4) {
      for (uint64_t seed = 0; seed < 5; ++seed) {
        const auto walk = RandomWalk(*grammar, *JsonTokenizer(), kLogits, seed, most,
                                     favours[(seed + static_cast<uint64_t>(most)) % 5]);
        ASSERT_LE(walk.tokens, most);
        ASSERT_TRUE(Parse(walk.text)) << schema << " within " << most << ": " << walk.text;
      }
    }
    const auto walk =
        RandomWalk(*grammar, *JsonTokenizer(), kLogits, 1, grammar->shortest_tokens());
    EXPECT_TRUE(Parse(walk.text)) << walk.text;
  }
}

TEST(GrammarConstraint, FarFromTheEndEverythingIsAfforded) {
  const auto grammar = Compiled(Schema(R"({"type":"array","items":{"type":"string"}})"));
  const auto constraint = grammar->NewConstraint({});
  for (const char c : std::string("[\"a")) ASSERT_TRUE(constraint->Accept(c));
  const auto far = Allowed(constraint.get(), 100, true);
  EXPECT_FALSE(constraint->steered());
  EXPECT_EQ(far, Allowed(constraint.get(), 100));
  // Three are left: one may go into the string, but none may begin another.
  const auto near = Allowed(constraint.get(), 3, true);
  EXPECT_THAT(near, ::testing::IsSupersetOf({'a', 'z', '"'}));
  EXPECT_LT(near.size(), far.size());
  EXPECT_TRUE(constraint->steered());
  // Two: what ends the string, for the bracket behind it. Id 263 is `{"`.
  EXPECT_THAT(Allowed(constraint.get(), 2, true), ::testing::ElementsAre('"', 263));
  // One: too few from here, so nothing is held back.
  EXPECT_EQ(Allowed(constraint.get(), 1, true), far);
}

// Of what must follow, 17 bytes make 6 tokens: `":` `"` `name` `name` `name` `"}`.
TEST(GrammarConstraint, TheEndIsCountedInTokens) {
  const auto grammar = Compiled(
      Schema(R"({"type":"object","properties":{"a":{"const":"namenamename"}},"required":["a"]})"));
  const auto constraint = grammar->NewConstraint({});
  for (const char c : std::string("{\"a")) ASSERT_TRUE(constraint->Accept(c));
  EXPECT_THAT(Allowed(constraint.get(), 7, true), ::testing::Contains('"'));
  EXPECT_FALSE(constraint->steered());
  const auto tight = Allowed(constraint.get(), 6, true);
  EXPECT_THAT(tight, ::testing::Not(::testing::Contains('"')));
  EXPECT_THAT(tight, ::testing::Contains(264));  // `":`
  EXPECT_TRUE(constraint->steered());
}

TEST(GrammarConstraint, DrawnAgainUntilItFits) {
  const auto grammar = Compiled(Schema(R"({"type":"array","items":{"type":"string"}})"));
  const auto constraint = grammar->NewConstraint({});
  ASSERT_TRUE(constraint->Accept('['));
  std::vector<TokenId> asked;
  const auto draw = [&](int32_t remaining) {
    asked.clear();
    return DrawAffordable(constraint.get(), remaining, kLogits, [&](auto& allowed) {
      const auto quote = std::ranges::find(allowed, '"');
      asked.push_back(quote == allowed.end() ? allowed[0] : *quote);
      return asked.back();
    });
  };
  EXPECT_EQ(draw(100), '"');
  EXPECT_FALSE(constraint->steered());
  // A string does not fit, a line break does.
  EXPECT_EQ(draw(2), '\n');
  EXPECT_THAT(asked, ::testing::ElementsAre('"', '\n'));
  EXPECT_TRUE(constraint->steered());
  // No token can be spared: the known rest follows at once.
  EXPECT_EQ(draw(1), ']');
  EXPECT_THAT(asked, ::testing::ElementsAre('"', ']'));
}

TEST(GrammarConstraint, ForcedTokensAreCertain) {
  const auto grammar = Compiled(Schema(R"({"type":"object","properties":{"name":{"const":"abcx"}},
                                           "required":["name"]})"));
  const auto constraint = grammar->NewConstraint({});
  ASSERT_TRUE(constraint->Accept('{'));
  std::vector<TokenId> forced;
  constraint->Forced(100, &forced);  // blank space may follow
  EXPECT_TRUE(forced.empty());
  ASSERT_TRUE(constraint->Accept('"'));
  constraint->Forced(100, &forced);
  EXPECT_EQ(JsonTokenizer()->DecodeBytes(forced, false), "name");  // `":` and `": "` are tokens
  std::vector<TokenId> one;
  constraint->Forced(0, &one);
  EXPECT_TRUE(one.empty());
  const auto off = grammar->NewConstraint({.begin_after = -1, .jump_forward = false});
  ASSERT_TRUE(off->Accept('{') && off->Accept('"'));
  off->Forced(100, &one);
  EXPECT_TRUE(one.empty());
}

TEST(GrammarConstraint, BeginsAfterAToken) {
  const auto grammar = Compiled(Schema(R"({"type":"boolean"})"));
  ASSERT_EQ(grammar->shortest_tokens(), 1);
  const TokenId think_end = 262;
  const auto constraint = grammar->NewConstraint({.begin_after = think_end, .jump_forward = true});
  std::vector<uint32_t> mask((kLogits + 31) / 32);
  EXPECT_FALSE(constraint->FillMask(100, mask));  // anything
  ASSERT_TRUE(constraint->Accept('x'));
  EXPECT_FALSE(constraint->Done());
  EXPECT_THAT(Allowed(constraint.get(), 2), ::testing::ElementsAre(think_end));
  EXPECT_TRUE(constraint->steered());
  ASSERT_TRUE(constraint->Accept(think_end));
  const auto allowed = Allowed(constraint.get(), 100);
  EXPECT_THAT(allowed, ::testing::Contains('t'));
  EXPECT_THAT(allowed, ::testing::Not(::testing::Contains('x')));
}

TEST(GrammarCompiler, RefusesBadGrammarsAndKeepsGoodOnes) {
  for (const char* text : {"", "root ::= ", "root ::= missing", "top ::= \"a\"", "root ::= root",
                           "root ::= \"a\" root", "root ::= root \"a\" | \"a\"", "root ::= (\"\")*",
                           "root ::= [a-", "\"a\"", "root ::= \"a\"{3,1}"}) {
    const auto refused = InProcess().Compile(Spec(Kind::kEbnf, text));
    EXPECT_FALSE(refused) << text;
    if (!refused) {
      EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    }
  }
  for (const auto kind : {Kind::kChoice, Kind::kStructural, Kind::kJsonSchema}) {
    EXPECT_FALSE(InProcess().Compile(Spec(kind, "[")));
  }
  const auto once = InProcess().Compile(Spec(Kind::kRegex, "abc"));
  const auto again = InProcess().Compile(Spec(Kind::kRegex, "abc"));
  ASSERT_TRUE(once && again);
  EXPECT_EQ(*once, *again);
}

TEST(GrammarConstraint, OnARealVocabulary) {
  const auto tokenizer = vivace::testing::SmolLm2();
  if (tokenizer == nullptr) GTEST_SKIP() << "needs models/ (./dev setup)";
  const auto logits = static_cast<int32_t>(tokenizer->vocab_size());
  const auto compiler = NewGrammarCompiler(tokenizer, logits, GrammarCompilerConfig{});
  const auto grammar = compiler->Compile(Schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer",
      "minimum":0,"maximum":120},"tags":{"type":"array","items":{"type":"string"}}},
      "required":["name","age","tags"]})"));
  ASSERT_TRUE(grammar) << grammar.error().message;
  for (int32_t most = (*grammar)->shortest_tokens(); most < 60; most += 7) {
    const auto walk = RandomWalk(**grammar, *tokenizer, logits, static_cast<uint64_t>(most), most);
    EXPECT_TRUE(Parse(walk.text)) << most << ": " << walk.text;
  }
}

// xgrammar decides most tokens when a grammar is compiled and tries the others for each mask, which
// takes about a microsecond each. Those must be few: a rule that ends inside of what models write,
// with nothing known of what stands behind it, leaves half of the vocabulary to be tried.
TEST(GrammarConstraint, FewTokensAreTriedForAMask) {
  const auto tokenizer = vivace::testing::SmolLm2();
  if (tokenizer == nullptr) GTEST_SKIP() << "needs models/ (./dev setup)";
  const auto compiler = NewGrammarCompiler(tokenizer, static_cast<int32_t>(tokenizer->vocab_size()),
                                           GrammarCompilerConfig{});
  for (const char* schema :
       {R"({"type":"object"})", R"({"type":"array","items":{"type":"string"}})",
        R"({"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["x","y"]},
            "c":{"type":"number"},"d":{"type":"boolean"}},"required":["a"]})",
        R"({"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":99}})",
        R"({"type":"object","properties":{"a":{"type":"string","maxLength":5},
            "b":{"type":"string","minLength":3,"maxLength":300},"c":{"type":"string","minLength":9},
            "d":{"anyOf":[{"type":"string","maxLength":80},{"type":"null"}]}}})",
        R"({"type":"string","pattern":"^[a-z]+-[0-9]{2,4}$"})",
        R"({"type":"string","pattern":"^.{1,200}$"})",
        R"({"type":"string","pattern":"^Dear .{3,90}$"})",
        R"({"type":"array","items":{"type":"string","pattern":"^[\\w ,.\"]{2,40}$"}})",
        R"({"enum":["a long text, with \"quotes\" and\nlines, that many tokens spell",
                    "a long text, of which the other one is a beginning","short"]})",
        R"({"type":"array","items":{"type":"string","maxLength":20},"maxItems":300})",
        R"({"type":"array","items":{"type":"integer"},"minItems":10,"maxItems":500})",
        R"({"type":"object","properties":{"n":{"type":"number","minimum":-2.5,"maximum":1e3},
            "i":{"type":"integer","exclusiveMinimum":-40,"maximum":123456}},
            "additionalProperties":{"type":"string","minLength":1,"maxLength":50}})"}) {
    const auto compiled = compiler->Compile(Schema(schema));
    ASSERT_TRUE(compiled) << compiled.error().message;
    const auto* grammar = dynamic_cast<const TokenGrammar*>(compiled->get());
    ASSERT_NE(grammar, nullptr);
    xgrammar::CompiledGrammar inner = grammar->compiled();
    for (const auto& [state, mask] : inner->adaptive_token_mask_cache) {
      EXPECT_LT(mask.uncertain_indices.size(), 1'000u)
          << schema << ", rule " << grammar->compiled().GetGrammar()->GetRule(state.rule_id).name
          << ", state " << state.element_id;
    }
  }
}

// What the tables of counts say is what trying would: at each count, near both ends of the length,
// inside of escapes and of characters of several bytes.
TEST(GrammarConstraint, CountsDecideAsTryingWould) {
  const auto grammar = Compiled(Schema(R"({"type":"string","minLength":2,"maxLength":4})"));
  const auto* tokens = dynamic_cast<const TokenGrammar*>(grammar.get());
  const std::string_view kinds[] = {"a", "\\n", "\\u00e9", "\\ud83d\\ude00", "ж", "語", "\\\""};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = "\"";
    for (uint64_t i = random() % 5; i > 0; --i) text += kinds[random() % std::size(kinds)];
    const std::string_view next = kinds[random() % std::size(kinds)];
    const auto constraint = grammar->NewConstraint({});
    Tracker tracker(tokens->automaton());
    for (const char c : text + std::string(next.substr(0, random() % next.size()))) {
      if (!tracker.Advance(static_cast<uint8_t>(c))) break;
      ASSERT_TRUE(constraint->Accept(static_cast<uint8_t>(c))) << text;
    }
    std::vector<TokenId> tried;
    for (TokenId id = 0; id < kLogits; ++id) {
      const std::string_view bytes = tokens->vocabulary().BytesOf(id);
      if (bytes.empty() || !tracker.AdvanceAll(bytes)) continue;
      tracker.Pop(static_cast<int32_t>(bytes.size()));
      tried.push_back(id);
    }
    auto allowed = Allowed(constraint.get(), 100);
    std::erase(allowed, kEos);
    // Tokens that end the string and go on behind it are left out where nothing may follow.
    EXPECT_EQ(allowed, tried) << text << next;
  }
}

TEST(GrammarConstraint, RepeatsOfWhatMayBeEmptyArePatterns) {
  for (const char* text : {"(a*)*b", "(|a)+", "((a|b*)+c?)*x", "(a?b?){2,3}!"}) {
    const auto grammar = Compiled(Spec(Kind::kRegex, text));
    ASSERT_NE(grammar, nullptr);
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const auto walk = RandomWalk(*grammar, *JsonTokenizer(), kLogits, seed, 12);
      EXPECT_TRUE(walk.ended) << text << " -> " << walk.text;
    }
  }
}

bool Takes(const CompiledGrammar& grammar, std::string_view text) {
  const auto constraint = grammar.NewConstraint({});
  for (const char c : text) {
    if (!constraint->Accept(static_cast<unsigned char>(c))) return false;
  }
  return constraint->Accept(kEos);
}

// Each text of up to `length` characters of `letters`.
std::vector<std::string> Texts(std::string_view letters, size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) break;
    for (const char letter : letters) texts.push_back(texts[i] + letter);
  }
  return texts;
}

TEST(GrammarConstraint, RepeatsThatOverlapThemselvesMeanTheSame) {
  const std::vector<std::string> texts = Texts("ab, ", 5);
  for (const char* text : {"([ab]+,? ?){1,3}", "(a|ab|b,?){2,}", "(b?a*){2,4}",
                           "([ab]{1,2},){0,2}(a+ ?)*", "x?([^b,]+,?)+", "((a|b )+|b){2}"}) {
    const auto grammar = Compiled(Spec(Kind::kRegex, text));
    ASSERT_NE(grammar, nullptr);
    const std::regex regex(text);
    for (const std::string& each : texts) {
      ASSERT_EQ(Takes(*grammar, each), std::regex_match(each, regex))
          << text << " of '" << each << "'";
    }
  }
}

TEST(GrammarConstraint, RepeatsThatOverlapThemselvesAreSpelledAsJson) {
  const std::regex regex("(?:[a\"\n]+,?){1,3}");
  const auto grammar = Compiled(Schema(R"({"type": "string", "pattern": "^([a\"\n]+,?){1,3}$"})"));
  ASSERT_NE(grammar, nullptr);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto walk = RandomWalk(*grammar, *JsonTokenizer(), kLogits, seed, 30);
    ASSERT_TRUE(walk.ended) << walk.text;
    const auto value = Parse(walk.text);
    EXPECT_TRUE(std::regex_match(std::string(value->as_string()), regex)) << walk.text;
  }
}

int64_t NanosOfMasks(const char* pattern) {
  const auto grammar = Compiled(Spec(Kind::kRegex, pattern));
  const auto constraint = grammar->NewConstraint({});
  const int64_t start = SteadyNanos();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Allowed(constraint.get(), 1000).empty());
    EXPECT_TRUE(constraint->Accept('a'));
  }
  return SteadyNanos() - start;
}

// No try-out need come by the branch of a rare token, behind which each takes twice as long as the
// one before.
TEST(GrammarConstraint, ATokenThatTakesTooLongEndsTheOutput) {
  const auto grammar = Compiled(Spec(Kind::kEbnf, R"(root ::= [^d] [^d] "x"* |
      ((((("d"?){1,1000}){1,1000}){1,1000}){1,1000}) "!")"));
  const auto constraint = grammar->NewConstraint({});
  const auto cheap = grammar->NewConstraint({});
  int tokens = 0;
  for (; !constraint->too_costly() && tokens < 100; ++tokens) {
    const auto allowed = Allowed(constraint.get(), 1'000);
    if (constraint->too_costly()) break;
    EXPECT_EQ(std::ranges::count(allowed, 'd'), 1);
    EXPECT_TRUE(constraint->Accept('d'));
  }
  EXPECT_LT(tokens, 100);
  EXPECT_FALSE(Allowed(constraint.get(), 1'000).empty());
  EXPECT_FALSE(constraint->Accept('d'));
  for (const char letter : {'a', 'b', 'x'}) {
    Allowed(cheap.get(), 1'000);
    EXPECT_TRUE(cheap->Accept(letter));
  }
  EXPECT_FALSE(cheap->too_costly());
}

// As rules, each way to cut a text was followed on its own, for minutes.
TEST(GrammarConstraint, RepeatsThatOverlapThemselvesStayCheap) {
  EXPECT_LT(NanosOfMasks("([a-z]+,? ?){1,50}"), 5'000 * NanosOfMasks("([a-z]+, ){1,50}"));
}

}  // namespace
}  // namespace vivace::grammar
