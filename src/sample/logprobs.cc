#include "sample/logprobs.h"

#include <algorithm>
#include <cmath>

namespace vivace {
namespace {

constexpr int32_t kRun = 512;  // logits whose maximum is looked at before any of them is

bool Better(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
}

// The greatest logits, by insertion into a short sorted list; runs that cannot contribute are
// skipped on their maximum. `top` holds logits, not yet log-probabilities.
int32_t SelectTop(const kernels::VocabOps& ops, std::span<const float> logits,
                  std::span<TokenLogprob> top) {
  size_t count = 0;
  const auto vocab = static_cast<int32_t>(logits.size());
  for (int32_t begin = 0; begin < vocab; begin += kRun) {
    const int32_t size = std::min(kRun, vocab - begin);
    if (count == top.size() && ops.max(logits.data() + begin, size) <= top[count - 1].logprob) {
      continue;
    }
    for (int32_t i = begin; i < begin + size; ++i) {
      const TokenLogprob entry{i, logits[static_cast<size_t>(i)]};
      if (count == top.size() && !Better(entry, top[count - 1])) continue;
      if (count < top.size()) ++count;
      size_t at = count - 1;
      for (; at > 0 && Better(entry, top[at - 1]); --at) top[at] = top[at - 1];
      top[at] = entry;
    }
  }
  return static_cast<int32_t>(count);
}

}  // namespace

bool ComputeLogprobs(const kernels::VocabOps& ops, std::span<const float> logits, TokenId token,
                     std::span<TokenLogprob> top, LogprobRow* row) {
  const auto vocab = static_cast<int32_t>(logits.size());
  const float max = ops.max(logits.data(), vocab);
  if (!std::isfinite(max)) return false;
  const double log_sum = std::log(ops.sum_exp(logits.data(), vocab, max, 1.0f));
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - max - log_sum);
  };
  const float chosen = logits[static_cast<size_t>(token)];
  row->chosen = {token, logprob(chosen)};
  row->rank = 1 + ops.count_above(logits.data(), vocab, chosen);
  row->num_top = top.empty() ? 0 : SelectTop(ops, logits, top);
  for (TokenLogprob& entry : top.first(static_cast<size_t>(row->num_top))) {
    entry.logprob = logprob(entry.logprob);
  }
  return true;
}

}  // namespace vivace
