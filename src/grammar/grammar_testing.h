// Vocabularies and random walks through grammars, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "text/text_testing.h"

namespace vivace::grammar::testing {

// All bytes, and tokens that begin, end and span parts of JSON. Ids 260 and 261 are <bos> and EOS.
inline std::shared_ptr<const Tokenizer> JsonTokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer = [] {
    TokenizerData data = vivace::testing::TinyData();
    for (const char* word : {"{\"",  "\":",  "\": \"",   "\", \"", "\"}",  "}}",    "}]",  "[[[[",
                             "{{",   "true", "false",    "null",   "    ", "\n  ",  "\n",  "  ",
                             "name", "na",   "\"name\"", ": ",     ", ",   "00",    "123", ".5",
                             "e9",   "-1",   "\\u",      "\\\"",   "abc",  "value", "ж",   "語"}) {
      data.tokens.push_back(word);
      data.types.push_back(TokenType::kUserDefined);
    }
    return vivace::testing::Make(std::move(data));
  }();
  return tokenizer;
}

inline constexpr TokenId kEos = 261;
inline constexpr int32_t kLogits = 320;  // more than there are tokens

inline GrammarCompiler& InProcess() {
  static const std::unique_ptr<GrammarCompiler> compiler =
      NewGrammarCompiler(JsonTokenizer(), kLogits, GrammarCompilerConfig{});
  return *compiler;
}

inline GrammarSpec Spec(GrammarSpec::Kind kind, std::string text) {
  GrammarSpec spec;
  spec.kind = kind;
  spec.text = std::move(text);
  return spec;
}

inline GrammarSpec Schema(std::string text) {
  return Spec(GrammarSpec::Kind::kJsonSchema, std::move(text));
}

inline std::shared_ptr<const CompiledGrammar> Compiled(const GrammarSpec& spec) {
  auto compiled = InProcess().Compile(spec);
  EXPECT_TRUE(compiled) << spec.text << ": " << compiled.error().message;
  return compiled ? *compiled : nullptr;
}

struct Walk {
  std::string text;
  bool ended = false;  // complete, before or as the tokens ran out
  bool steered = false;
  int32_t tokens = 0;
};

// Draws among what the masks allow until the output ends or `most` tokens are made. `favour`: a
// byte whose token is taken where it may be, as a logit_bias of 100 has it.
inline Walk RandomWalk(const CompiledGrammar& grammar, const Tokenizer& tokenizer, int32_t logits,
                       uint64_t seed, int32_t most, int favour = -1) {
  std::mt19937_64 random(seed);
  const auto constraint = grammar.NewConstraint({});
  std::vector<uint32_t> mask((static_cast<size_t>(logits) + 31) / 32);
  Walk walk;
  while (walk.tokens < most && !walk.ended) {
    std::vector<TokenId> forced;
    if (random() % 2 == 0) constraint->Forced(most - walk.tokens, &forced);
    if (forced.empty()) {
      EXPECT_TRUE(constraint->FillMask(most - walk.tokens, mask));
      std::vector<TokenId> allowed;
      for (TokenId id = 0; id < logits; ++id) {
        if (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) allowed.push_back(id);
      }
      EXPECT_FALSE(allowed.empty()) << "nothing may follow " << walk.text;
      if (allowed.empty()) return walk;
      const bool take = favour >= 0 && random() % 8 != 0 &&
                        std::find(allowed.begin(), allowed.end(), favour) != allowed.end();
      forced.push_back(take ? favour : allowed[random() % allowed.size()]);
    }
    for (const TokenId token : forced) {
      const bool accepted = constraint->Accept(token);
      EXPECT_TRUE(accepted) << "token " << token << " after " << walk.text;
      if (!accepted) return walk;
      ++walk.tokens;
      const auto& stops = tokenizer.eos_ids();
      if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
        walk.ended = true;
      } else {
        walk.text += tokenizer.TokenBytes(token);
      }
    }
    walk.ended |= constraint->Done();
  }
  walk.steered = constraint->steered();
  return walk;
}

// Strict JSON, or nothing.
inline std::optional<boost::json::value> Parse(const std::string& text) {
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = 1'000;
  auto value = boost::json::parse(text, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

}  // namespace vivace::grammar::testing
