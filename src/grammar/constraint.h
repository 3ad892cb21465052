// The constraint of one output: xgrammar's matcher for the masks, a Tracker for the way to the end.
//
// Steering. The invariant: after every token there is a known rest of the output that is complete
// and takes no more tokens than remain. Far from the end nothing is checked: the most that any
// token can add to the rest is known (Automaton::token_growth), and fits. Nearer, every token that
// the mask allows is tried, byte by byte down the trie of the vocabulary, and those whose rest
// would not fit are closed. Where that leaves none, the next token of the known rest is the only
// one. A try costs bytes, not tokens: what all tokens share is walked once, and bytes that change
// nothing (inside a string) are not walked at all; kMaxSteps bounds it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/compiled.h"
#include "grammar/grammar.h"
#include "grammar/tracker.h"

namespace vivace::grammar {

class GrammarConstraint final : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar,
                    const CompiledGrammar::ConstraintOptions& options);

  bool FillMask(int32_t remaining, std::span<uint32_t> mask) override;
  bool Accept(TokenId token) override;
  bool Done() const override {
    return begun_ && (stopped_ || (grammar_->automaton()->steerable() && tracker_.Finished()));
  }
  void Forced(int32_t limit, std::vector<TokenId>* tokens) override;
  bool steered() const override { return steered_; }

 private:
  static constexpr int kMaxSteps = 20'000;  // bytes tried for one mask

  bool FillBeforeBegin(int32_t remaining, std::span<uint32_t> mask);
  bool NearEnd(int32_t remaining) const;
  void Steer(int32_t remaining, std::span<uint32_t> mask);
  // Closes tokens whose rest may not fit into `room` tokens; whether it closed any.
  bool CloseLong(int32_t room, std::span<uint32_t> mask);
  bool Fits(int32_t room);
  bool MakePlan();

  std::shared_ptr<const TokenGrammar> grammar_;
  CompiledGrammar::ConstraintOptions options_;
  xgrammar::GrammarMatcher matcher_;
  Tracker tracker_;
  bool begun_;
  bool stopped_ = false;
  bool steered_ = false;
  // The known rest, from `plan_at_` on, in the fewest tokens; and the text of the whole plan.
  // Where it is not known, the last one's, for other rests that end alike.
  std::vector<TokenId> plan_;
  size_t plan_at_ = 0;
  bool plan_known_ = false;
  std::string plan_text_;
  std::string rest_;  // scratch
};

}  // namespace vivace::grammar
