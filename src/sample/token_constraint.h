// What one choice may say next: the interface between constrained decoding (grammar/) and the
// sampler, so that the engine knows nothing of grammars.
//
// One object per choice, given to the engine with the request. The engine calls it in this order,
// never from two threads at once: Forced (engine thread, between steps: before the first token and
// after each that was drawn) and Accept of what it gave, then FillMask, Affords for each token
// drawn until it says yes, and Accept of that one (from a compute worker, while logits are
// sampled). Forced is left out where log-probabilities are wanted. A sequence that is set back and
// computed again keeps its object as it is: its output has been accepted already. Nothing here may
// throw or wait; each call takes microseconds, or is the last but one (too_costly).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace vivace {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Writes one bit per token of the vocabulary, 32 to a word, 1: may be drawn; ids above the
  // grammar's own vocabulary are 0. `mask` [ceil(vocab / 32)]. False: everything may, and `mask`
  // is unspecified. `remaining`: output tokens that may still be made, this one included.
  virtual bool FillMask(int32_t remaining, std::span<uint32_t> mask) = 0;

  // Whether the output can still be complete within `remaining` tokens if `token`, drawn from
  // FillMask's `mask`, comes now. False: `mask` has become smaller, at least one token stays, and
  // another is to be drawn from it. An output that can't be complete in time whatever comes affords
  // anything.
  virtual bool Affords(TokenId /*token*/, int32_t /*remaining*/, std::span<uint32_t> /*mask*/) {
    return true;
  }

  // The token was drawn or forced. False: it was not allowed (a fault of ours), or too_costly();
  // the sequence ends with an error.
  virtual bool Accept(TokenId token) = 0;

  // The output is complete and only an end-of-text token may follow, or has followed. The sequence
  // ends here, without waiting for one.
  virtual bool Done() const = 0;

  // Appends tokens that must follow whatever the model thinks (jump-forward), at most `limit`; none
  // is the usual case. They are not accepted yet.
  virtual void Forced(int32_t limit, std::vector<TokenId>* tokens) = 0;

  // Affords has said no: the answer tells that its end was imposed.
  virtual bool steered() const = 0;

  // A call took so long that no step can wait for another one: Accept says no from then on.
  virtual bool too_costly() const { return false; }
};

}  // namespace vivace
