#include "sample/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"

namespace vivace {
namespace {

using Candidate = SampleScratch::Candidate;

// Below this the second best token's weight underflows for any gap a float can hold apart: greedy.
constexpr float kGreedyTemperature = 1e-5f;
// First guess of how far below the maximum candidates are looked for, in units of the temperature.
constexpr float kFirstReach = 12.0f;
constexpr float kWideReach = 80.0f;       // and the second; the third is everything
constexpr size_t kManyCandidates = 2000;  // above this, sorting into buckets first is quicker
constexpr int32_t kDrawRun = 1024;  // logits whose weights are summed at once when nothing is cut

// A total order, so that what is kept never depends on how a selection algorithm moves equals.
bool Heavier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double Mass(std::span<const Candidate> candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.weight; });
}

size_t Bucket(const Candidate& candidate) {
  return std::bit_cast<uint32_t>(candidate.weight) >> SampleScratch::kBucketShift;
}

// What SelectMass still has to look at: everything before `begin` is in, with mass `before`.
struct Search {
  size_t begin, end;
  double before;
};

// Narrows the search to one bucket of weights, in two passes. The bits of positive floats are in
// the order of their values.
Search NarrowByBucket(std::span<Candidate> candidates, double mass, std::span<double> buckets) {
  std::ranges::fill(buckets, 0.0);
  for (const Candidate& candidate : candidates) buckets[Bucket(candidate)] += candidate.weight;
  size_t crossing = buckets.size() - 1;
  double before = 0;
  while (crossing > 0 && before + buckets[crossing] < mass) before += buckets[crossing--];
  const auto first = candidates.begin();
  const auto above = std::partition(first, candidates.end(),
                                    [&](const Candidate& c) { return Bucket(c) > crossing; });
  const auto within = std::partition(above, candidates.end(),
                                     [&](const Candidate& c) { return Bucket(c) == crossing; });
  return {static_cast<size_t>(above - first), static_cast<size_t>(within - first), before};
}

// Reorders so that the heaviest few whose weights first reach `mass` stand in front, and returns
// how many they are; at least one, all if they never do. Linear on average.
size_t SelectMass(std::span<Candidate> candidates, double mass, std::span<double> buckets) {
  Search search{0, candidates.size(), 0};
  if (candidates.size() > kManyCandidates) search = NarrowByBucket(candidates, mass, buckets);
  if (search.begin == search.end) return std::max<size_t>(search.end, 1);
  while (search.end - search.begin > 1) {
    const size_t middle = search.begin + (search.end - search.begin) / 2;
    const auto first = candidates.begin();
    std::nth_element(first + static_cast<ptrdiff_t>(search.begin),
                     first + static_cast<ptrdiff_t>(middle),
                     first + static_cast<ptrdiff_t>(search.end), Heavier);
    const double upper = Mass(candidates.subspan(search.begin, middle - search.begin));
    if (search.before + upper >= mass) {
      search.end = middle;
    } else {
      search.before += upper;
      search.begin = middle;
    }
  }
  return search.begin + 1;
}

// The inverse of the cumulative weights, heaviest first: where the mass reaches u of the whole.
TokenId PickByWeight(std::span<Candidate> candidates, double u, std::span<double> buckets) {
  return candidates[SelectMass(candidates, u * Mass(candidates), buckets) - 1].token;
}

// A draw from the whole row, in id order, without collecting candidates.
TokenId DrawFromAll(const kernels::VocabOps& ops, std::span<const float> logits, float max,
                    float scale, double u) {
  const auto count = static_cast<int32_t>(logits.size());
  double left = u * ops.sum_exp(logits.data(), count, max, scale);
  int32_t begin = 0;
  TokenId last = 0;
  for (; begin < count; begin += kDrawRun) {
    const int32_t size = std::min(kDrawRun, count - begin);
    const double run = ops.sum_exp(logits.data() + begin, size, max, scale);
    if (left < run) {
      for (int32_t i = begin; i < begin + size; ++i) {
        const double weight = std::exp((logits[static_cast<size_t>(i)] - max) * scale);
        if (weight > 0) last = i;
        left -= weight;
        if (left < 0) return i;
      }
      return last;  // rounding ate the rest
    }
    left -= run;
  }
  return ops.find(logits.data(), count, max);
}

// Candidates at most `reach` temperatures below the maximum, with their weights.
std::span<Candidate> Collect(const kernels::VocabOps& ops, std::span<const float> logits, float max,
                             float scale, float reach, SampleScratch* scratch) {
  const float floor =
      std::isinf(reach) ? std::numeric_limits<float>::lowest() : max - reach / scale;
  const int32_t count =
      ops.collect(logits.data(), static_cast<int32_t>(logits.size()), floor, scratch->ids.data());
  for (int32_t i = 0; i < count; ++i) {
    const TokenId token = scratch->ids[static_cast<size_t>(i)];
    const float z = (logits[static_cast<size_t>(token)] - max) * scale;
    scratch->candidates[static_cast<size_t>(i)] = {std::exp(z), token};
  }
  return std::span(scratch->candidates).first(static_cast<size_t>(count));
}

}  // namespace

void SamplerState::Bind(const SamplingParams& params, int32_t choice,
                        std::span<const TokenId> tokens, int32_t prompt_len,
                        std::span<const TokenId> eos_ids, int32_t max_model_len) {
  params_ = params;
  choice_ = choice;
  outputs_ = static_cast<int32_t>(tokens.size()) - prompt_len;
  penalised_ = params.presence_penalty != 0 || params.frequency_penalty != 0 ||
               params.repetition_penalty != 1;
  banned_ = params.stop_token_ids;
  if (!params.ignore_eos) banned_.insert(banned_.end(), eos_ids.begin(), eos_ids.end());
  size_t edits = banned_.size() + params.logit_bias.size();
  if (penalised_) {
    // All it can ever hold: an output of unknown length may fill the context.
    const int64_t most =
        params.max_tokens > 0 ? int64_t{prompt_len} + params.max_tokens : max_model_len;
    const auto room =
        std::max(tokens.size(), static_cast<size_t>(std::min<int64_t>(most, max_model_len)));
    counts_.Reset(room);
    edits += room;
    for (size_t i = 0; i < tokens.size(); ++i) {
      i < static_cast<size_t>(prompt_len) ? counts_.AddPrompt(tokens[i])
                                          : counts_.AddOutput(tokens[i]);
    }
  }
  saved_.clear();
  saved_.reserve(edits);
}

std::optional<TokenId> SamplerState::Sample(const kernels::VocabOps& ops, std::span<float> logits,
                                            int32_t position, SampleScratch* scratch) {
  const auto count = static_cast<int32_t>(logits.size());
  // A NaN must be seen before an edit could hide it.
  float max = ops.max(logits.data(), count);
  if (std::isnan(max)) return std::nullopt;
  Edit(logits.data());
  if (!saved_.empty()) max = ops.max(logits.data(), count);
  std::optional<TokenId> token;
  if (std::isfinite(max)) {
    token = params_.temperature < kGreedyTemperature ? ops.find(logits.data(), count, max)
                                                     : Draw(ops, logits, max, position, scratch);
  }
  Restore(logits.data());
  if (token) {
    ++outputs_;
    if (penalised_) counts_.AddOutput(*token);
  }
  return token;
}

void SamplerState::SetLogit(float* logits, TokenId token, float value) {
  saved_.push_back({token, logits[token]});
  logits[token] = value;
}

void SamplerState::Edit(float* logits) {
  for (const auto& [token, bias] : params_.logit_bias) {
    SetLogit(logits, token, logits[token] + bias);
  }
  if (penalised_) {
    for (const TokenCounts::Entry& entry : counts_.entries()) {
      float x = logits[entry.token];
      x = x > 0 ? x / params_.repetition_penalty : x * params_.repetition_penalty;
      x -= params_.frequency_penalty * static_cast<float>(entry.outputs);
      if (entry.outputs > 0) x -= params_.presence_penalty;
      SetLogit(logits, entry.token, x);
    }
  }
  if (outputs_ < params_.min_tokens) {
    for (const TokenId token : banned_) {
      SetLogit(logits, token, -std::numeric_limits<float>::infinity());
    }
  }
}

void SamplerState::Restore(float* logits) {
  for (size_t i = saved_.size(); i-- > 0;) logits[saved_[i].token] = saved_[i].logit;
  saved_.clear();
}

TokenId SamplerState::Draw(const kernels::VocabOps& ops, std::span<const float> logits, float max,
                           int32_t position, SampleScratch* scratch) const {
  const double u = UniformDraw(params_.seed, choice_, position);
  const float scale = 1.0f / params_.temperature;
  const auto vocab = static_cast<int32_t>(logits.size());
  const bool cut_k = params_.top_k > 0 && params_.top_k < vocab;
  const bool cut_p = params_.top_p < 1.0f;
  const float min_reach =
      params_.min_p > 0 ? -std::log(params_.min_p) : std::numeric_limits<float>::infinity();
  if (!cut_k && !cut_p && std::isinf(min_reach)) {
    return DrawFromAll(ops, logits, max, scale, u);
  }
  // min_p bounds the reach for good. top_k and top_p start near the maximum and look further only
  // if too little was found there.
  float reach = cut_k || cut_p ? std::min(kFirstReach, min_reach) : min_reach;
  double total = 0;  // mass of all that min_p leaves; only top_p without top_k asks for it
  if (cut_p && !cut_k && std::isinf(min_reach)) {
    total = ops.sum_exp(logits.data(), vocab, max, scale);
  }
  for (;; reach = reach < kWideReach ? std::min(kWideReach, min_reach) : min_reach) {
    std::span<Candidate> kept = Collect(ops, logits, max, scale, reach, scratch);
    const bool all = reach >= min_reach || kept.size() == logits.size();
    if (cut_k) {
      const auto k = static_cast<size_t>(params_.top_k);
      if (kept.size() < k && !all) continue;
      if (kept.size() > k) {
        std::nth_element(kept.begin(), kept.begin() + params_.top_k - 1, kept.end(), Heavier);
        kept = kept.first(k);
      }
    }
    if (cut_p) {
      const double mass = params_.top_p * (cut_k || !std::isinf(min_reach) ? Mass(kept) : total);
      if (!cut_k && !all && Mass(kept) < mass) continue;
      if (!cut_k && !std::isinf(min_reach) && !all) continue;  // the mass under min_p must be whole
      kept = kept.first(SelectMass(kept, mass, scratch->mass));
    }
    return PickByWeight(kept, u, scratch->mass);
  }
}

}  // namespace vivace
