#include "sim/fake_model.h"

#include <algorithm>

namespace vivace::sim {
namespace {

// The finaliser of SplitMix64 over both words.
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t NextCell(uint64_t previous, TokenId token, int32_t position) {
  return Mix(Mix(previous, static_cast<uint64_t>(token)), static_cast<uint64_t>(position));
}

TokenId SampleFrom(uint64_t state, const SequenceSpec& spec, int32_t length) {
  const uint64_t key = Mix(spec.seed, static_cast<uint64_t>(spec.choice));
  return static_cast<TokenId>(Mix(Mix(state, key), static_cast<uint64_t>(length)) % kVocab);
}

float RowValue(uint64_t state, TokenId token) {
  return -static_cast<float>(Mix(state, static_cast<uint64_t>(token)) % 4096);
}

}  // namespace

ExpectedOutput OutputAlone(const SequenceSpec& spec, int32_t max_model_len) {
  ExpectedOutput expected;
  const int32_t prompt_len = static_cast<int32_t>(spec.prompt.size());
  const int32_t max_tokens = std::min(spec.max_tokens, max_model_len - prompt_len);
  uint64_t cell = 0;
  uint64_t state = 0;
  for (int32_t position = 0;; ++position) {
    const int32_t outputs = static_cast<int32_t>(expected.tokens.size());
    const TokenId fed =
        position < prompt_len ? spec.prompt[position] : expected.tokens[position - prompt_len];
    cell = NextCell(cell, fed, position);
    state = Mix(state, cell);
    if (position + 1 < prompt_len) {
      expected.prompt_rows.push_back(RowValue(state, spec.prompt[position + 1]));
      continue;
    }
    if (max_tokens == 0) {
      expected.finish = SeqFinish::kLength;
      return expected;
    }
    if (outputs == spec.error_at) {
      expected.finish = SeqFinish::kError;
      return expected;
    }
    const TokenId token = SampleFrom(state, spec, position + 1);
    expected.tokens.push_back(token);
    const bool stops =
        std::find(spec.stop_ids.begin(), spec.stop_ids.end(), token) != spec.stop_ids.end();
    if (stops && outputs >= spec.min_tokens) {
      expected.finish = SeqFinish::kStop;
      return expected;
    }
    if (outputs + 1 == max_tokens) {
      expected.finish = SeqFinish::kLength;
      return expected;
    }
  }
}

FakeModel::FakeModel(int32_t num_blocks, int32_t block_size, int32_t num_slots)
    : block_size_(block_size),
      cells_(static_cast<size_t>(num_blocks) * static_cast<size_t>(block_size)),
      contents_(static_cast<size_t>(num_blocks)),
      slots_(static_cast<size_t>(num_slots)) {}

void FakeModel::BindSlot(SeqSlot slot, const SequenceSpec* spec) {
  if (slots_[slot.value] != nullptr) error_ = "a slot was bound twice";
  slots_[slot.value] = spec;
}

void FakeModel::ReleaseSlot(SeqSlot slot) {
  if (slots_[slot.value] == nullptr) error_ = "a free slot was released";
  slots_[slot.value] = nullptr;
}

uint64_t& FakeModel::Cell(const StepPlan& plan, const PlanItem& item, int32_t position) {
  const BlockId block = plan.block_ids[item.first_block + position / block_size_];
  return cells_[block.value * block_size_ + position % block_size_];
}

// All of a step is written before any of it is read, as a batch may do.
void FakeModel::Run(const StepPlan& plan, StepResult* result) {
  result->Clear();
  result->step = plan.step;
  for (const PlanItem& item : plan.items) Write(plan, item);
  for (size_t i = 0; i < plan.items.size(); ++i) Read(plan, static_cast<int32_t>(i), result);
}

void FakeModel::Write(const StepPlan& plan, const PlanItem& item) {
  const SequenceSpec* spec = slots_[item.slot.value];
  if (spec == nullptr) {
    error_ = "a plan uses a slot that is not bound";
    return;
  }
  for (int32_t i = 0; i < item.num_tokens; ++i) {
    const int32_t position = item.first_position + i;
    const TokenId token = plan.tokens[item.first_token + i];
    const uint64_t previous = position == 0 ? 0 : Cell(plan, item, position - 1);
    Cell(plan, item, position) = NextCell(previous, token, position);
    Contents& contents = contents_[plan.block_ids[item.first_block + position / block_size_].value];
    // The block before ends with the tokens that lead up to this one.
    if (position % block_size_ == 0) {
      contents.tokens.clear();
      if (position > 0) {
        contents.tokens =
            contents_[plan.block_ids[item.first_block + position / block_size_ - 1].value].tokens;
      }
      contents.salt = spec->salt;
    }
    contents.tokens.push_back(token);
  }
}

void FakeModel::Read(const StepPlan& plan, int32_t item_index, StepResult* result) {
  const PlanItem& item = plan.items[item_index];
  const SequenceSpec* spec = slots_[item.slot.value];
  if (spec == nullptr) return;
  StepResult::PromptRows rows{
      .item = item_index, .first = static_cast<int32_t>(result->logprob_rows.size()), .count = 0};
  const int32_t end = item.first_position + item.num_tokens;
  uint64_t state = 0;
  for (int32_t position = 0; position < end; ++position) {
    state = Mix(state, Cell(plan, item, position));
    if (item.logit_rows != LogitRows::kAll || position < item.first_position) continue;
    const TokenId next = position + 1 < end
                             ? plan.tokens[item.first_token + position + 1 - item.first_position]
                             : item.next_prompt_token;
    if (next < 0) continue;
    LogprobRow row;
    row.chosen = {next, RowValue(state, next)};
    result->logprob_rows.push_back(row);
    ++rows.count;
  }
  if (rows.count > 0) result->prompt_rows.push_back(rows);
  if (!item.sample) return;
  const int32_t outputs = end - static_cast<int32_t>(spec->prompt.size());
  SampledToken sampled{.item = item_index};
  if (outputs == spec->error_at) {
    sampled.error = SampleError::kNonFiniteLogits;
  } else {
    sampled.token = SampleFrom(state, *spec, end);
  }
  result->sampled.push_back(sampled);
}

bool FakeModel::Holds(BlockId block, std::span<const TokenId> tokens,
                      const std::string& salt) const {
  const Contents& contents = contents_[block.value];
  return contents.salt == salt && std::ranges::equal(contents.tokens, tokens);
}

}  // namespace vivace::sim
