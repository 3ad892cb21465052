#include "kernels/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/row_ops.h"

namespace vivace::kernels {
namespace {

constexpr float kTaken = -std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

// Values to choose from: above kTaken.
float Candidate(float value) { return value < kLowest ? kLowest : value; }

// The first index of the greatest value that is not taken; no index is taken twice.
int32_t TakeBest(float* values, int32_t count) {
  int32_t best = 0;
  while (best + 1 < count && values[best] == kTaken) ++best;
  for (int32_t i = best + 1; i < count; ++i) {
    if (values[i] > values[best]) best = i;
  }
  values[best] = kTaken;
  return best;
}

void Softmax(float* values, int32_t count) {
  float most = values[0];
  for (int32_t i = 1; i < count; ++i) most = std::max(most, values[i]);
  float sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += values[i] = std::exp(values[i] - most);
  for (int32_t i = 0; i < count; ++i) values[i] /= sum;
}

float GroupScoreOf(GroupScore kind, const float* scores, int32_t count) {
  float first = kTaken, second = kTaken;
  for (int32_t i = 0; i < count; ++i) {
    if (scores[i] > first) {
      second = first;
      first = scores[i];
    } else if (scores[i] > second) {
      second = scores[i];
    }
  }
  return kind == GroupScore::kMax || count < 2 ? first : first + second;
}

// Zeroes scores outside the best groups.
void KeepBestGroups(const Router& router, float* scores, float* groups) {
  const int32_t size = router.experts() / router.groups;
  for (int32_t g = 0; g < router.groups; ++g) {
    groups[g] = Candidate(GroupScoreOf(router.group_score, scores + g * size, size));
  }
  for (int32_t i = 0; i < router.top_groups; ++i) TakeBest(groups, router.groups);
  for (int32_t g = 0; g < router.groups; ++g) {
    if (groups[g] != kTaken) std::fill_n(scores + g * size, size, 0.0f);
  }
}

}  // namespace

void SelectExperts(const Router& router, float* logits, float* scratch, int32_t* ids,
                   float* weights) {
  const int32_t experts = router.experts();
  float* const scores = logits;
  if (router.score == RouterScore::kSoftmax) Softmax(scores, experts);
  if (router.score == RouterScore::kSigmoid) {
    for (int32_t e = 0; e < experts; ++e) scores[e] = Sigmoid(scores[e]);
  }
  float* const choice = scratch;
  for (int32_t e = 0; e < experts; ++e) {
    const float bias = router.selection_bias != nullptr ? router.selection_bias[e] : 0.0f;
    choice[e] = Candidate(scores[e] + bias);
  }
  if (router.groups > 1) KeepBestGroups(router, choice, scratch + experts);
  for (int32_t i = 0; i < router.top_k; ++i) {
    ids[i] = TakeBest(choice, experts);
    weights[i] = scores[ids[i]];
  }
  if (router.score == RouterScore::kSoftmaxOfChosen) Softmax(weights, router.top_k);
  float divisor = 1;
  if (router.normalize) {
    divisor = 1e-20f;  // so that all zeros stay zeros
    for (int32_t i = 0; i < router.top_k; ++i) divisor += weights[i];
  }
  for (int32_t i = 0; i < router.top_k; ++i) weights[i] = weights[i] / divisor * router.scale;
}

void SortByExpert(const int32_t* ids, const float* weights, int32_t num_rows, int32_t top_k,
                  int32_t experts, const Dispatch& out) {
  std::fill_n(out.first, experts + 1, 0);
  const int32_t pairs = num_rows * top_k;
  for (int32_t i = 0; i < pairs; ++i) ++out.first[ids[i] + 1];
  for (int32_t e = 0; e < experts; ++e) out.first[e + 1] += out.first[e];
  // first[e] is where the next row of e goes, and so ends as the beginning of e + 1.
  for (int32_t i = 0; i < pairs; ++i) {
    const int32_t at = out.first[ids[i]]++;
    out.rows[at] = i / top_k;
    out.weights[at] = weights[i];
  }
  for (int32_t e = experts; e > 0; --e) out.first[e] = out.first[e - 1];
  out.first[0] = 0;
}

}  // namespace vivace::kernels
