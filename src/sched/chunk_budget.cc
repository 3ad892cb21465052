#include "sched/chunk_budget.h"

#include <algorithm>

namespace vivace {
namespace {

// A gap is a step, the publishing of its tokens and a wake-up of whoever sends them: what a step
// may take of the target.
constexpr double kStepShare = 0.9;

// The margin ends where steps that the limit has shaped take longer than their share about once in
// a hundred: each that does raises it by kRaise, each lets kRelease of it go. So it is as wide as
// times are unsteady and no wider; a single slow step costs little, and where the machine is slow
// in a way that shorter steps do not help, the cap keeps prompts from starving.
constexpr double kRaise = 0.05;
constexpr double kRelease = 0.004;
constexpr double kMaxMargin = 0.5;
constexpr double kShaped = 0.75;  // of the limit; shorter steps tell nothing about it

}  // namespace

void ChunkBudget::Begin(int32_t decodes, int64_t decode_context) {
  shape_ = {.decodes = decodes, .decode_context = decode_context};
}

double ChunkBudget::LimitNs() const {
  const auto target = static_cast<double>(target_ns_);
  if (shape_.decodes == 0) return target * kQuietTargets;
  return target * kStepShare / (1.0 + margin_);
}

bool ChunkBudget::Fits(const Request& request, int32_t count) const {
  StepShape shape = shape_;
  shape.AddPrompt(request.position, count, request.all_logits,
                  request.ends && count == request.wanted);
  return model_.Predict(shape) <= LimitNs();
}

// Predictions grow with the count.
int32_t ChunkBudget::LargestThatFits(const Request& request) const {
  int32_t fits = 0;
  int32_t too_many = request.wanted + 1;
  while (too_many - fits > 1) {
    const int32_t middle = fits + (too_many - fits) / 2;
    (Fits(request, middle) ? fits : too_many) = middle;
  }
  return fits;
}

// Tokens the step computes of prompts in any case.
int32_t ChunkBudget::Least() const { return shape_.decodes == 0 ? kQuietChunk : kMinChunk; }

bool ChunkBudget::HasRoom(int32_t position) const {
  if (!governed() || shape_.prompt_rows < Least()) return true;
  if (!model_.knows_prompts()) return shape_.decodes > 0 && shape_.prompt_rows < kUntimedChunk;
  return Fits({.position = position, .wanted = kMinChunk}, kMinChunk);
}

int32_t ChunkBudget::Take(const Request& request) {
  if (request.wanted == 0 || !HasRoom(request.position)) return 0;
  int32_t count = request.wanted;
  if (governed()) {
    const int32_t least = std::max(Least() - shape_.prompt_rows, kMinChunk);
    const int32_t fits =
        model_.knows_prompts() ? LargestThatFits(request) : kUntimedChunk - shape_.prompt_rows;
    count = std::min(std::max(fits, least), request.wanted);
  }
  shape_.AddPrompt(request.position, count, request.all_logits,
                   request.ends && count == request.wanted);
  return count;
}

int32_t ChunkBudget::TakeAppended(int32_t position, int32_t wanted) {
  for (int32_t count = 0; count < wanted; ++count) {
    StepShape more = shape_;
    more.decodes += 1;
    more.decode_context += position + count + 1;
    if (governed() && model_.Predict(more) > LimitNs()) return count;
    shape_ = more;
  }
  return wanted;
}

void ChunkBudget::Observe(int64_t elapsed_ns) {
  if (!governed() || elapsed_ns <= 0) return;
  if (mixed() && model_.knows_prompts()) AdjustMargin(elapsed_ns);
  model_.Observe(shape_, elapsed_ns);
}

void ChunkBudget::AdjustMargin(int64_t elapsed_ns) {
  const double predicted = model_.Predict(shape_);
  // Above the limit is only what no limit could have made shorter.
  if (predicted > LimitNs() || predicted < LimitNs() * kShaped) return;
  margin_ -= margin_ * kRelease;
  if (static_cast<double>(elapsed_ns) > static_cast<double>(target_ns_) * kStepShare) {
    margin_ = std::min(margin_ + kRaise, kMaxMargin);
  }
}

}  // namespace vivace
