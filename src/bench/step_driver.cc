#include "bench/step_driver.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace vivace::bench {
namespace {

constexpr uint64_t kSeed = 1;
constexpr TokenId kToken = 0;

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  params.ignore_eos = true;
  params.max_tokens = 1 << 20;
  return params;
}

TokenId RandomToken(uint64_t n, int32_t vocab) {
  const auto words =
      Philox(kSeed, {static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 0});
  return static_cast<TokenId>(words[0] % static_cast<uint32_t>(vocab));
}

}  // namespace

StepDriver::StepDriver(Executor* executor, int32_t sequences, int32_t max_tokens)
    : executor_(*executor),
      groups_(executor->limits().kv_windows.size()),
      blocks_per_sequence_((max_tokens + executor->limits().block_size - 1) /
                           executor->limits().block_size) {
  VIVACE_CHECK(sequences <= executor_.limits().max_sequences);
  VIVACE_CHECK(int64_t{sequences} * groups_ * blocks_per_sequence_ <=
               executor_.limits().num_blocks);
}

void StepDriver::TouchCache() {
  const ExecutorLimits& limits = executor_.limits();
  const int32_t per_step = std::min(limits.max_sequences, limits.max_batched_tokens);
  for (int32_t slot = 0; slot < per_step; ++slot)
    executor_.BindSlot(SeqSlot(slot),
                       {.params = Greedy(), .tokens = {&kToken, 1}, .prompt_len = 1});
  for (int32_t block = 0; block < limits.num_blocks;) {
    plan_.Clear();
    for (int32_t slot = 0; slot < per_step && block < limits.num_blocks; ++slot) {
      plan_.items.push_back({.slot = SeqSlot(slot),
                             .first_token = static_cast<int32_t>(plan_.tokens.size()),
                             .num_tokens = 1,
                             .first_block = static_cast<int32_t>(plan_.block_ids.size()),
                             .num_blocks = 1});
      plan_.tokens.push_back(0);
      for (int32_t group = 0; group < groups_; ++group, ++block)
        plan_.block_ids.push_back(BlockId(std::min(block, limits.num_blocks - 1)));
    }
    RunStep();
  }
}

void StepDriver::Bind(int32_t sequences, int32_t context) {
  const std::vector<TokenId> tokens(static_cast<size_t>(std::max(context, 1)), 0);
  for (int32_t slot = 0; slot < sequences; ++slot)
    executor_.BindSlot(
        SeqSlot(slot),
        {.params = Greedy(), .tokens = tokens, .prompt_len = static_cast<int32_t>(tokens.size())});
}

void StepDriver::AddItem(int32_t sequence, int32_t first_position, int32_t count, bool sample) {
  const int32_t block_size = executor_.limits().block_size;
  const int32_t blocks = (first_position + count + block_size - 1) / block_size;
  VIVACE_CHECK(blocks <= blocks_per_sequence_);
  plan_.items.push_back({.slot = SeqSlot(sequence),
                         .first_token = static_cast<int32_t>(plan_.tokens.size()),
                         .num_tokens = count,
                         .first_position = first_position,
                         .first_block = static_cast<int32_t>(plan_.block_ids.size()),
                         .num_blocks = blocks,
                         .logit_rows = sample ? LogitRows::kLast : LogitRows::kNone,
                         .sample = sample});
  for (int32_t i = 0; i < count; ++i)
    plan_.tokens.push_back(RandomToken(drawn_++, executor_.limits().vocab));
  for (int32_t group = 0; group < groups_; ++group) {
    const int32_t first = (sequence * groups_ + group) * blocks_per_sequence_;
    for (int32_t b = 0; b < blocks; ++b) plan_.block_ids.push_back(BlockId(first + b));
  }
}

void StepDriver::RunStep() {
  ++plan_.step;
  const int64_t start = SteadyNanos();
  executor_.Launch(plan_);
  executor_.Await(&result_);
  wall_ns_ = SteadyNanos() - start;
  times_ = executor_.last_times();
}

void StepDriver::Chunk(int32_t first, int32_t count, bool last) {
  plan_.Clear();
  AddItem(0, first, count, last);
  RunStep();
}

void StepDriver::Decode(int32_t sequences, int32_t position) {
  plan_.Clear();
  for (int32_t s = 0; s < sequences; ++s) AddItem(s, position, 1, true);
  RunStep();
}

void StepDriver::Mix(int32_t decodes, int32_t position, int32_t prompts, int32_t first,
                     int32_t count) {
  plan_.Clear();
  for (int32_t s = 0; s < decodes; ++s) AddItem(prompts + s, position, 1, true);
  for (int32_t s = 0; s < prompts; ++s) AddItem(s, first, count, false);
  RunStep();
}

}  // namespace vivace::bench
