// Vocabularies and random walks through grammars, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "sample/token_mask.h"
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

inline std::vector<TokenId> TokensOf(std::span<const uint32_t> mask, int32_t logits) {
  std::vector<TokenId> tokens;
  for (TokenId id = 0; id < logits; ++id) {
    if (InMask(mask, id)) tokens.push_back(id);
  }
  return tokens;
}

// What `pick` takes among the tokens that may come, until the constraint affords it; -1: nothing
// may come. Asks as an executor does.
template <typename Pick>
TokenId DrawAffordable(TokenConstraint* constraint, int32_t remaining, int32_t logits,
                       Pick&& pick) {
  std::vector<uint32_t> mask(MaskWords(logits));
  EXPECT_TRUE(constraint->FillMask(remaining, mask));
  for (int attempt = 0;; ++attempt) {
    const auto allowed = TokensOf(mask, logits);
    if (allowed.empty()) return -1;
    const TokenId token = pick(allowed);
    if (constraint->Affords(token, remaining, mask)) return token;
    if (attempt == 20) return -1;  // draws in vain
  }
}

// Draws among what the masks allow until the output ends or `most` tokens are made. `favour`: a
// byte whose token is taken where it may be, as a logit_bias of 100 has it.
inline Walk RandomWalk(const CompiledGrammar& grammar, const Tokenizer& tokenizer, int32_t logits,
                       uint64_t seed, int32_t most, int favour = -1) {
  std::mt19937_64 random(seed);
  const auto constraint = grammar.NewConstraint({});
  Walk walk;
  while (walk.tokens < most && !walk.ended) {
    std::vector<TokenId> forced;
    if (random() % 2 == 0) constraint->Forced(most - walk.tokens, &forced);
    if (forced.empty()) {
      const TokenId token =
          DrawAffordable(constraint.get(), most - walk.tokens, logits, [&](auto& allowed) {
            const bool take = favour >= 0 && random() % 8 != 0 &&
                              std::find(allowed.begin(), allowed.end(), favour) != allowed.end();
            return take ? favour : allowed[random() % allowed.size()];
          });
      EXPECT_GE(token, 0) << "nothing may follow " << walk.text;
      if (token < 0) return walk;
      forced.push_back(token);
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
