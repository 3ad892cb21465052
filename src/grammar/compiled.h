// A compiled grammar with what its constraints share. See grammar.h.
#pragma once

#include <xgrammar/xgrammar.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

namespace vivace::grammar {

class TokenGrammar final : public CompiledGrammar,
                           public std::enable_shared_from_this<TokenGrammar> {
 public:
  // Refuses what can never end, or never within limits::kMaxGrammarShortest; `field` for errors.
  static Result<std::shared_ptr<const TokenGrammar>> Create(
      xgrammar::CompiledGrammar compiled, std::shared_ptr<const Vocabulary> vocabulary,
      const std::string& field);

  int32_t shortest_tokens() const override { return shortest_tokens_; }
  size_t output_bytes() const override;
  std::unique_ptr<TokenConstraint> NewConstraint(const ConstraintOptions& options) const override;

  const xgrammar::CompiledGrammar& compiled() const { return compiled_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::shared_ptr<const Automaton>& automaton() const { return automaton_; }
  size_t bytes() const { return bytes_; }

 private:
  TokenGrammar(xgrammar::CompiledGrammar compiled, std::shared_ptr<const Vocabulary> vocabulary)
      : compiled_(std::move(compiled)), vocabulary_(std::move(vocabulary)) {}

  xgrammar::CompiledGrammar compiled_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const Automaton> automaton_;
  int32_t shortest_tokens_ = 0;
  size_t bytes_ = 0;
};

}  // namespace vivace::grammar
