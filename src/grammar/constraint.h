// The constraint of one output: xgrammar's matcher for the masks, a Tracker for the way to the end.
//
// Steering. The invariant: after every token there is a known rest of the output that is complete
// and takes no more tokens than remain. Masks know nothing of it: it is the token drawn that is
// tried, and where the shortest rest behind it would not fit it is drawn again without it
// (Affords). That costs what accepting a token does, is counted in tokens, not bytes, and
// interferes at the last moment that it can. The next token of the known rest always fits.
//
// Cost. Compiling tries a grammar out (worker.cc), but no try comes by every branch: what a call
// takes is measured, in time of this thread, and one that took too long ends the output.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/compiled.h"
#include "grammar/grammar.h"
#include "grammar/token_spelling.h"
#include "grammar/tracker.h"

namespace vivace::grammar {

class GrammarConstraint final : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar,
                    const CompiledGrammar::ConstraintOptions& options);

  bool FillMask(int32_t remaining, std::span<uint32_t> mask) override;
  bool Affords(TokenId token, int32_t remaining, std::span<uint32_t> mask) override;
  bool Accept(TokenId token) override;
  bool Done() const override {
    return begun_ && (stopped_ || (Steerable() && tracker_.Finished()));
  }
  void Forced(int32_t limit, std::vector<TokenId>* tokens) override;
  bool steered() const override { return steered_; }
  bool too_costly() const override { return too_costly_; }

 private:
  static constexpr int kMostRedraws = 4;  // before the known rest is followed

  bool Steerable() const { return !lost_ && grammar_->automaton()->steerable(); }
  bool FillBeforeBegin(int32_t remaining, std::span<uint32_t> mask);
  void FillWithStops(std::span<uint32_t> mask) const;
  bool MakePlan();
  int32_t PlanLeft() const { return static_cast<int32_t>(plan_.size() - plan_at_); }
  bool FitsBehind(TokenId token, int32_t room);
  void Narrow(TokenId token, int32_t remaining, std::span<uint32_t> mask);

  std::shared_ptr<const TokenGrammar> grammar_;
  CompiledGrammar::ConstraintOptions options_;
  xgrammar::GrammarMatcher matcher_;
  Tracker tracker_;
  bool begun_;
  bool stopped_ = false;
  bool steered_ = false;
  bool too_costly_ = false;
  bool lost_ = false;  // the tracker could not follow: the output goes on by the masks alone
  int redraws_ = 0;    // of the token that comes
  // The known rest in the fewest tokens, from `plan_at_` on.
  std::vector<TokenId> plan_;
  size_t plan_at_ = 0;
  bool plan_known_ = false;
  TokenSpelling spelling_;  // of the last rest that was looked at
  std::string rest_;        // scratch
};

}  // namespace vivace::grammar
