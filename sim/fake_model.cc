#include "sim/fake_model.h"

#include <algorithm>
#include <array>

namespace vivace::sim {
namespace {

// The finaliser of SplitMix64 over both words.
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// `previous` is 0 at the start, and where the window does not reach it.
uint64_t NextCell(uint64_t previous, TokenId token, int32_t position, int32_t group) {
  return Mix(Mix(previous, static_cast<uint64_t>(token)),
             static_cast<uint64_t>(position) * kMaxKvGroups + static_cast<uint64_t>(group));
}

bool SeesPrevious(int32_t window, int32_t position) { return position > 0 && window != 1; }

// All cells that `position` sees of a group. `before` is what the position before it saw.
template <typename CellAt>
uint64_t Seen(int32_t window, int32_t position, uint64_t before, const CellAt& cell) {
  if (window == 0) return Mix(before, cell(position));
  uint64_t seen = 0;
  for (int32_t p = std::max(position - window + 1, 0); p <= position; ++p)
    seen = Mix(seen, cell(p));
  return seen;
}

uint64_t StateOf(const std::array<uint64_t, kMaxKvGroups>& seen, int32_t num_groups) {
  uint64_t state = 0;
  for (int32_t g = 0; g < num_groups; ++g) state = Mix(state, seen[g]);
  return state;
}

uint64_t TextOf(const std::string& salt) {
  uint64_t text = 0;
  for (const char c : salt) text = Mix(text, static_cast<uint64_t>(c));
  return text;
}
uint64_t TextOf(uint64_t text, TokenId next) {
  return Mix(text, static_cast<uint64_t>(next) + 0x100);
}

TokenId SampleFrom(uint64_t state, const SequenceSpec& spec, int32_t length) {
  const uint64_t key = Mix(spec.seed, static_cast<uint64_t>(spec.choice));
  return static_cast<TokenId>(Mix(Mix(state, key), static_cast<uint64_t>(length)) % kVocab);
}

float RowValue(uint64_t state, TokenId token) {
  return -static_cast<float>(Mix(state, static_cast<uint64_t>(token)) % 4096);
}

// Whether the output ends with `token` as its next one.
bool Say(const SequenceSpec& spec, int32_t max_tokens, TokenId token, ExpectedOutput* expected) {
  expected->tokens.push_back(token);
  const auto outputs = static_cast<int32_t>(expected->tokens.size());
  const bool stops =
      std::find(spec.stop_ids.begin(), spec.stop_ids.end(), token) != spec.stop_ids.end();
  if (stops && outputs > spec.min_tokens) {
    expected->finish = SeqFinish::kStop;
  } else if (outputs == max_tokens) {
    expected->finish = SeqFinish::kLength;
  }
  return expected->finish != SeqFinish::kNone;
}

bool SayForced(const SequenceSpec& spec, int32_t max_tokens, ExpectedOutput* expected) {
  const auto outputs = static_cast<int32_t>(expected->tokens.size());
  const auto forced = ForcedBehind(spec, outputs, spec.MostForced(outputs, max_tokens));
  return std::ranges::any_of(forced,
                             [&](TokenId token) { return Say(spec, max_tokens, token, expected); });
}

}  // namespace

int32_t SequenceSpec::MostForced(int32_t outputs, int32_t most_tokens) const {
  if (outputs > 0) return most_tokens - outputs;
  return prompt_logprobs ? 0 : std::max(most_tokens - 1, 0);
}

std::vector<TokenId> ForcedBehind(const SequenceSpec& spec, int32_t outputs, int32_t most) {
  std::vector<TokenId> forced;
  if (spec.forced_every == 0 || outputs % spec.forced_every != 0) return forced;
  for (int32_t i = 0; i < std::min(spec.num_forced, most); ++i) {
    forced.push_back(
        static_cast<TokenId>(Mix(spec.seed ^ 0xf0, static_cast<uint64_t>(outputs + i)) % kVocab));
  }
  return forced;
}

ExpectedOutput OutputAlone(const SequenceSpec& spec, int32_t max_model_len,
                           const KvWindows& windows) {
  ExpectedOutput expected;
  const int32_t prompt_len = static_cast<int32_t>(spec.prompt.size());
  const int32_t max_tokens = std::min(spec.max_tokens, max_model_len - prompt_len);
  std::array<std::vector<uint64_t>, kMaxKvGroups> cells;
  std::array<uint64_t, kMaxKvGroups> seen{};
  if (SayForced(spec, max_tokens, &expected)) return expected;
  for (int32_t position = 0;; ++position) {
    const int32_t outputs = static_cast<int32_t>(expected.tokens.size());
    const TokenId fed =
        position < prompt_len ? spec.prompt[position] : expected.tokens[position - prompt_len];
    for (int32_t g = 0; g < windows.size(); ++g) {
      const uint64_t previous = SeesPrevious(windows[g], position) ? cells[g].back() : 0;
      cells[g].push_back(NextCell(previous, fed, position, g));
      seen[g] = Seen(windows[g], position, seen[g], [&](int32_t p) { return cells[g][p]; });
    }
    const uint64_t state = StateOf(seen, windows.size());
    if (position + 1 < prompt_len) {
      expected.prompt_rows.push_back(RowValue(state, spec.prompt[position + 1]));
      continue;
    }
    if (position + 1 < prompt_len + outputs) continue;
    if (max_tokens == 0) {
      expected.finish = SeqFinish::kLength;
      return expected;
    }
    if (outputs == spec.error_at) {
      expected.finish = SeqFinish::kError;
      return expected;
    }
    const TokenId token = SampleFrom(state, spec, position + 1);
    if (Say(spec, max_tokens, token, &expected)) return expected;
    if (SayForced(spec, max_tokens, &expected)) return expected;
  }
}

FakeModel::FakeModel(const KvCacheConfig& config, int32_t num_slots)
    : windows_(config.windows),
      block_size_(config.block_size),
      cells_(static_cast<size_t>(config.num_blocks) * static_cast<size_t>(config.block_size)),
      contents_(static_cast<size_t>(config.num_blocks)),
      slots_(static_cast<size_t>(num_slots)) {}

void FakeModel::BindSlot(SeqSlot slot, const SequenceSpec* spec, std::span<const TokenId> tokens) {
  Slot& bound = slots_[slot.value];
  if (bound.spec != nullptr) error_ = "a slot was bound twice";
  bound.spec = spec;
  bound.texts = {TextOf(spec->salt)};
  for (const TokenId token : tokens) bound.texts.push_back(TextOf(bound.texts.back(), token));
}

void FakeModel::ReleaseSlot(SeqSlot slot) {
  if (slots_[slot.value].spec == nullptr) error_ = "a free slot was released";
  slots_[slot.value].spec = nullptr;
}

uint64_t& FakeModel::Cell(const StepPlan& plan, const PlanItem& item, int32_t group,
                          int32_t position) {
  static uint64_t nowhere = 0;
  const BlockId block = Block(plan, item, group, position);
  if (block.valid()) return cells_[block.value * block_size_ + position % block_size_];
  error_ = "a block is used that was given back";
  return nowhere;
}

// All of a step is written before any of it is read, as a batch may do.
void FakeModel::Run(const StepPlan& plan, StepResult* result) {
  result->Clear();
  result->step = plan.step;
  for (const PlanItem& item : plan.items) {
    if (slots_[item.slot.value].spec == nullptr) error_ = "a plan uses a slot that is not bound";
    if (!error_.empty()) return;
    CheckReads(plan, item);
  }
  for (const PlanItem& item : plan.items) Write(plan, item);
  for (size_t i = 0; i < plan.items.size(); ++i) Read(plan, static_cast<int32_t>(i), result);
}

// What the item's tokens see of earlier steps was written for this very text; the tables hold no
// more than that.
void FakeModel::CheckReads(const StepPlan& plan, const PlanItem& item) {
  const std::vector<uint64_t>& texts = slots_[item.slot.value].texts;
  for (int32_t g = 0; g < windows_.size(); ++g) {
    const int32_t window = windows_[g];
    const int32_t seen = window == 0 ? 0 : std::max(item.first_position - window + 1, 0);
    for (int32_t at = 0; at < item.first_position; at += block_size_) {
      const BlockId block = Block(plan, item, g, at);
      const int32_t end = std::min(at + block_size_, item.first_position);
      if (at + block_size_ <= seen) {
        if (block.valid()) error_ = "a block that the window has left is still held";
        continue;
      }
      if (!block.valid()) {
        error_ = "a block that the window holds was given back";
        return;
      }
      const Contents& contents = contents_[block.value];
      if (contents.group != g || contents.text != texts[end]) {
        error_ = "a block that is read holds another text";
      }
    }
  }
}

void FakeModel::Write(const StepPlan& plan, const PlanItem& item) {
  std::vector<uint64_t>& texts = slots_[item.slot.value].texts;
  texts.resize(item.first_position + 1);
  for (int32_t i = 0; i < item.num_tokens; ++i) {
    const int32_t position = item.first_position + i;
    const TokenId token = plan.tokens[item.first_token + i];
    texts.push_back(TextOf(texts.back(), token));
    for (int32_t g = 0; g < windows_.size(); ++g) {
      const uint64_t previous =
          SeesPrevious(windows_[g], position) ? Cell(plan, item, g, position - 1) : 0;
      Cell(plan, item, g, position) = NextCell(previous, token, position, g);
      const BlockId block = Block(plan, item, g, position);
      if (block.valid()) contents_[block.value] = {.group = g, .text = texts.back()};
    }
  }
}

void FakeModel::Read(const StepPlan& plan, int32_t item_index, StepResult* result) {
  const PlanItem& item = plan.items[item_index];
  const SequenceSpec* spec = slots_[item.slot.value].spec;
  StepResult::PromptRows rows{
      .item = item_index, .first = static_cast<int32_t>(result->logprob_rows.size()), .count = 0};
  const int32_t end = item.first_position + item.num_tokens;
  std::array<uint64_t, kMaxKvGroups> seen{};
  for (int32_t position = 0; position < end; ++position) {
    const bool in_step = position >= item.first_position;
    for (int32_t g = 0; g < windows_.size(); ++g) {
      if (windows_[g] > 0 && !in_step) continue;
      seen[g] =
          Seen(windows_[g], position, seen[g], [&](int32_t p) { return Cell(plan, item, g, p); });
    }
    if (item.logit_rows != LogitRows::kAll || !in_step) continue;
    const TokenId next = position + 1 < end
                             ? plan.tokens[item.first_token + position + 1 - item.first_position]
                             : item.next_prompt_token;
    if (next < 0) continue;
    LogprobRow row;
    row.chosen = {next, RowValue(StateOf(seen, windows_.size()), next)};
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
    sampled.token = SampleFrom(StateOf(seen, windows_.size()), *spec, end);
  }
  result->sampled.push_back(sampled);
}

bool FakeModel::Holds(BlockId block, int32_t group, std::span<const TokenId> tokens,
                      const std::string& salt) const {
  uint64_t text = TextOf(salt);
  for (const TokenId token : tokens) text = TextOf(text, token);
  return contents_[block.value].group == group && contents_[block.value].text == text;
}

}  // namespace vivace::sim
