// Raw log-probabilities of one row of logits: log-softmax before any sampling edit.
// Allocates nothing. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "kernels/vocab_ops.h"
#include "sched/step_plan.h"

namespace vivace {

// Fills `row.chosen` and `row.rank` for `token`, and top[0, row.num_top) with the min(top.size(),
// vocab) most likely tokens, best first, lower ids first among equals. row.first_top is left alone.
// False, and nothing filled, if the row holds a NaN or +inf.
bool ComputeLogprobs(const kernels::VocabOps& ops, std::span<const float> logits, TokenId token,
                     std::span<TokenLogprob> top, LogprobRow* row);

}  // namespace vivace
