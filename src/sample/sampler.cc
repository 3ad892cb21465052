#include "sample/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace vivace {
namespace {

// Below this a logit that is a thousandth less than the greatest has no weight left: greedy.
constexpr float kGreedyTemperature = 1e-5f;
// First guess of how far below the maximum candidates are looked for, in units of the temperature.
constexpr float kFirstReach = 12.0f;
constexpr float kWideReach = 80.0f;  // and the second; the third is everything

// Weights of tokens, ids ascending. Lies in the scratch.
struct Candidates {
  int32_t* ids;
  float* weights;
  int32_t count;
};

// Where weights are cut off: all above `floor` stay, and the first `equals` of those equal to it.
struct Cut {
  float floor;
  int32_t equals;
};

constexpr float kBanned = -std::numeric_limits<float>::infinity();

std::vector<uint32_t> MaskOf(std::span<const TokenId> ids) {
  if (ids.empty()) return {};
  std::vector<uint32_t> mask(MaskWords(*std::ranges::max_element(ids) + 1));
  for (const TokenId id : ids) AddToMask(mask, id);
  return mask;
}

// Whether the two have a token in common that a row of `vocab` has too.
bool Meet(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t vocab) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const size_t left = vocab - i * 32;
    const uint32_t tokens = left < 32 ? (1u << left) - 1 : ~0u;
    if ((a[i] & b[i] & tokens) != 0) return true;
  }
  return false;
}

// A run of 32 logits or fewer, with -inf where the bit is 0.
void CopyAllowed(std::span<const float> logits, uint32_t bits, float* out) {
  if (bits == ~0u) {
    std::ranges::copy(logits, out);
  } else if (bits == 0) {
    std::fill_n(out, logits.size(), kBanned);
  } else {
    for (size_t i = 0; i < logits.size(); ++i) out[i] = (bits >> i & 1) != 0 ? logits[i] : kBanned;
  }
}

float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t BitsOf(float x) { return std::bit_cast<uint32_t>(x); }

// The cut that leaves the heaviest few whose worth first reaches `wanted`: at least one, all if
// they never do. `above(x, n, value)` is the worth of the x > value, `worth(x)` of one. Bisects the
// bits of the floor (those of positive floats are in the order of their values) and looks again
// only at what is not decided, so a few passes do, however flat the weights are. `lowest` lies
// below all.
template <typename Above, typename Worth>
Cut FindCut(const kernels::VocabOps& ops, const Candidates& all, float lowest, double wanted,
            float* undecided, Above&& above, Worth&& worth) {
  uint32_t low = BitsOf(lowest), high = BitsOf(1.0f);  // undecided: those in (low, high]
  const float* x = all.weights;
  int32_t count = all.count;
  double before = 0;  // worth of those above high
  while (high - low > 1 && count > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const double reached = before + above(x, count, FloatOf(middle));
    if (reached >= wanted) {
      low = middle;
    } else {
      high = middle;
      before = reached;
    }
    count = ops.keep_between(x, count, FloatOf(low), FloatOf(high), undecided);
    x = undecided;
  }
  if (count == 0) return {FloatOf(high + 1), all.count};  // all together do not reach it
  if (count == 1) return {x[0], 1};
  const float floor = FloatOf(high);
  const double equals = std::ceil((wanted - before) / worth(floor));
  return {floor, static_cast<int32_t>(std::clamp(equals, 1.0, static_cast<double>(count)))};
}

Cut CutToMass(const kernels::VocabOps& ops, const Candidates& all, float lowest, double mass,
              float* undecided) {
  return FindCut(
      ops, all, lowest, mass, undecided,
      [&](const float* x, int32_t n, float value) { return ops.sum_above(x, n, value); },
      [](float weight) { return double{weight}; });
}

Cut CutToCount(const kernels::VocabOps& ops, const Candidates& all, float lowest, int32_t wanted,
               float* undecided) {
  return FindCut(
      ops, all, lowest, wanted, undecided,
      [&](const float* x, int32_t n, float value) {
        return static_cast<double>(ops.count_above(x, n, value));
      },
      [](float) { return 1.0; });
}

void Apply(const kernels::VocabOps& ops, const Cut& cut, Candidates* candidates) {
  Candidates& c = *candidates;
  c.count = ops.keep_pairs(c.ids, c.weights, c.count, cut.floor);
  const int32_t equal = c.count - ops.count_above(c.weights, c.count, cut.floor);
  if (equal <= cut.equals) return;
  // The last of the equal ones go: seldom, and then a pass over what is left.
  int32_t equals = 0, kept = 0;
  for (int32_t i = 0; i < c.count; ++i) {
    if (c.weights[i] == cut.floor && ++equals > cut.equals) continue;
    c.ids[kept] = c.ids[i];
    c.weights[kept++] = c.weights[i];
  }
  c.count = kept;
}

// The index at which the sum of the weights exceeds `left`; the last positive one if rounding ate
// the rest.
int32_t IndexAt(const float* weights, int32_t count, double left) {
  int32_t last = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (weights[i] > 0) last = i;
    left -= weights[i];
    if (left < 0) return i;
  }
  return last;
}

// The inverse of the cumulative weights, in the order of ids: where they reach u of the whole.
// Weights come in runs of kRun: `run_mass(begin, size)` is the mass of one, `run(begin, size)`
// points to its weights.
template <typename RunMass, typename Run>
int32_t Invert(int32_t count, double u, std::span<double> masses, RunMass&& run_mass, Run&& run) {
  constexpr int32_t kRun = SampleScratch::kRun;
  const int32_t runs = (count + kRun - 1) / kRun;
  double total = 0;
  for (int32_t i = 0; i < runs; ++i) {
    total += masses[static_cast<size_t>(i)] = run_mass(i * kRun, std::min(kRun, count - i * kRun));
  }
  double left = u * total;
  int32_t at = 0, last = 0;
  for (; at < runs && left >= masses[static_cast<size_t>(at)]; ++at) {
    if (masses[static_cast<size_t>(at)] > 0) last = at;
    left -= masses[static_cast<size_t>(at)];
  }
  if (at == runs) {  // rounding ate the rest
    at = last;
    left = std::numeric_limits<double>::infinity();
  }
  const int32_t begin = at * kRun, size = std::min(kRun, count - begin);
  return begin + IndexAt(run(begin, size), size, left);
}

// A draw from the whole row, without collecting candidates.
TokenId DrawFromAll(const kernels::VocabOps& ops, std::span<const float> logits, float max,
                    float scale, double u, SampleScratch* scratch) {
  return Invert(
      static_cast<int32_t>(logits.size()), u, scratch->masses,
      [&](int32_t begin, int32_t size) {
        return ops.sum_exp(logits.data() + begin, size, max, scale);
      },
      [&](int32_t begin, int32_t size) {
        std::copy_n(logits.data() + begin, size, scratch->weights.data());
        ops.weigh(scratch->weights.data(), size, max, scale);
        return scratch->weights.data();
      });
}

TokenId DrawFrom(const kernels::VocabOps& ops, const Candidates& candidates, double u,
                 SampleScratch* scratch) {
  return candidates.ids[Invert(
      candidates.count, u, scratch->masses,
      [&](int32_t begin, int32_t size) {
        return ops.sum_above(candidates.weights + begin, size, -1.0f);
      },
      [&](int32_t begin, int32_t) { return candidates.weights + begin; })];
}

}  // namespace

void SamplerState::Bind(const SamplingParams& params, int32_t choice,
                        std::span<const TokenId> tokens, int32_t prompt_len,
                        std::span<const TokenId> eos_ids, int32_t max_model_len) {
  params_ = params;
  choice_ = choice;
  length_ = static_cast<int32_t>(tokens.size());
  outputs_ = length_ - prompt_len;
  const int32_t room = max_model_len - prompt_len;
  max_outputs_ = params.max_tokens > 0 ? std::min(params.max_tokens, room) : room;
  penalised_ = params.presence_penalty != 0 || params.frequency_penalty != 0 ||
               params.repetition_penalty != 1;
  banned_ = params.stop_token_ids;
  if (!params.ignore_eos) banned_.insert(banned_.end(), eos_ids.begin(), eos_ids.end());
  allowed_ = MaskOf(params.allowed_token_ids);
  tail_length_ = 0;
  for (const auto& word : params.bad_words) tail_length_ = std::max(tail_length_, word.size() - 1);
  const auto output = tokens.subspan(static_cast<size_t>(prompt_len));
  const auto tail = output.last(std::min(output.size(), tail_length_));
  tail_.reserve(tail_length_ + 1);
  tail_.assign(tail.begin(), tail.end());
  size_t edits = banned_.size() + params.logit_bias.size() + params.bad_words.size();
  if (penalised_) {
    // All it can ever hold: an output of unknown length may fill the context.
    const auto most = std::max(tokens.size(), static_cast<size_t>(prompt_len + max_outputs_));
    counts_.Reset(most);
    edits += most;
    for (size_t i = 0; i < tokens.size(); ++i) {
      i < static_cast<size_t>(prompt_len) ? counts_.AddPrompt(tokens[i])
                                          : counts_.AddOutput(tokens[i]);
    }
  }
  saved_.clear();
  saved_.reserve(edits);
}

std::optional<TokenId> SamplerState::Sample(const kernels::VocabOps& ops, std::span<float> logits,
                                            int32_t position, SampleScratch* scratch,
                                            std::span<const uint32_t> allowed, int32_t attempt) {
  const auto count = static_cast<int32_t>(logits.size());
  // A NaN must be seen before an edit could hide it.
  float max = ops.max(logits.data(), count);
  if (std::isnan(max)) return std::nullopt;
  float* row = Mask(logits, allowed, scratch);
  Edit(row);
  const size_t edits = saved_.size();
  Ban(row);
  if (row != logits.data() || !saved_.empty()) max = ops.max(row, count);
  if (max == kBanned && saved_.size() > edits) {
    Restore(row, edits);
    max = ops.max(row, count);
  }
  std::optional<TokenId> token;
  if (std::isfinite(max)) {
    const double u = UniformDraw(params_.seed, choice_, position, attempt);
    token = Greedy() ? ops.find(row, count, max) : Draw(ops, {row, logits.size()}, max, u, scratch);
  }
  Restore(row, 0);
  return token;
}

// The row to draw from: the logits themselves if every token may be drawn.
float* SamplerState::Mask(std::span<float> logits, std::span<const uint32_t> allowed,
                          SampleScratch* scratch) const {
  std::span<const uint32_t> own = allowed_;
  if (!allowed.empty() && !own.empty() && !Meet(allowed, own, logits.size())) own = {};
  if (allowed.empty() && own.empty()) return logits.data();
  const auto word = [](std::span<const uint32_t> mask, size_t i) {
    return mask.empty() ? ~0u : i < mask.size() ? mask[i] : 0;
  };
  for (size_t i = 0; i * 32 < logits.size(); ++i) {
    const auto run = logits.subspan(i * 32, std::min<size_t>(32, logits.size() - i * 32));
    CopyAllowed(run, word(allowed, i) & word(own, i), scratch->row.data() + i * 32);
  }
  return scratch->row.data();
}

bool SamplerState::Greedy() const {
  return params_.temperature < kGreedyTemperature || params_.top_k == 1;
}

bool SamplerState::TakesArgmax() const {
  const bool banning = outputs_ < params_.min_tokens && !banned_.empty();
  return Greedy() && !penalised_ && !banning && params_.logit_bias.empty() && allowed_.empty() &&
         params_.bad_words.empty();
}

void SamplerState::Accept(TokenId token) {
  ++length_;
  ++outputs_;
  if (penalised_) counts_.AddOutput(token);
  if (tail_length_ == 0) return;
  if (tail_.size() == tail_length_) tail_.erase(tail_.begin());
  tail_.push_back(token);
}

void SamplerState::Follow(int32_t position, std::span<const TokenId> tokens) {
  const int32_t end = position + static_cast<int32_t>(tokens.size());
  length_ = std::max(length_, position);
  while (length_ < end) Accept(tokens[static_cast<size_t>(length_ - position)]);
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
}

void SamplerState::Ban(float* logits) {
  for (const std::vector<TokenId>& word : params_.bad_words) {
    const auto start = std::span(word).first(word.size() - 1);
    if (start.size() > tail_.size()) continue;
    if (std::ranges::equal(start, std::span(tail_).last(start.size()))) {
      SetLogit(logits, word.back(), kBanned);
    }
  }
  if (outputs_ >= params_.min_tokens) return;
  for (const TokenId token : banned_) SetLogit(logits, token, kBanned);
}

// Takes back all edits but the first few.
void SamplerState::Restore(float* logits, size_t edits) {
  for (; saved_.size() > edits; saved_.pop_back()) {
    logits[saved_.back().token] = saved_.back().logit;
  }
}

TokenId SamplerState::Draw(const kernels::VocabOps& ops, std::span<const float> logits, float max,
                           double u, SampleScratch* scratch) const {
  const float scale = 1.0f / params_.temperature;
  const auto vocab = static_cast<int32_t>(logits.size());
  const bool cut_k = params_.top_k > 0 && params_.top_k < vocab;
  const bool cut_p = params_.top_p < 1.0f;
  const float min_reach =
      params_.min_p > 0 ? -std::log(params_.min_p) : std::numeric_limits<float>::infinity();
  if (!cut_k && !cut_p && std::isinf(min_reach)) {
    return DrawFromAll(ops, logits, max, scale, u, scratch);
  }
  // min_p bounds the reach for good. top_k and top_p start near the maximum and look further only
  // if too little was found there.
  const bool bounded = !std::isinf(min_reach);
  float reach = cut_k || cut_p ? std::min(kFirstReach, min_reach) : min_reach;
  for (;; reach = reach < kWideReach ? std::min(kWideReach, min_reach) : min_reach) {
    Candidates kept{scratch->ids.data(), scratch->weights.data(), 0};
    const float floor =
        std::isinf(reach) ? std::numeric_limits<float>::lowest() : max - reach / scale;
    kept.count = ops.collect(logits.data(), vocab, floor, kept.ids, kept.weights);
    const bool all = reach >= min_reach || kept.count == vocab;
    if (cut_k && kept.count < params_.top_k && !all) continue;
    double mass = ops.weigh(kept.weights, kept.count, max, scale);
    const float lowest = 0.9f * std::exp(-reach);  // below every weight
    if (cut_k && kept.count > params_.top_k) {
      Apply(ops, CutToCount(ops, kept, lowest, params_.top_k, scratch->undecided.data()), &kept);
      mass = ops.sum_above(kept.weights, kept.count, -1.0f);
    }
    if (cut_p) {
      // top_p is of what top_k and min_p leave: without top_k, also of what lies beyond the reach.
      if (!cut_k && !all && bounded) continue;
      const bool whole = cut_k || all;
      const double total = whole ? mass : ops.sum_exp(logits.data(), vocab, max, scale);
      const double wanted = params_.top_p * total;
      if (!whole && mass < wanted) continue;
      Apply(ops, CutToMass(ops, kept, lowest, wanted, scratch->undecided.data()), &kept);
    }
    return DrawFrom(ops, kept, u, scratch);
  }
}

}  // namespace vivace
