// Launch and Await must not allocate, on any thread: counted by replacing the global operator new
// of this program. Constraints are fakes that don't: what a grammar's parser may take as its output
// grows is the rule's one exception, bounded by CompiledGrammar::output_bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/testing/fake_constraint.h"
#include "engine/testing/plan_driver.h"
#include "engine/testing/tiny_model.h"

namespace {

std::atomic<int64_t> allocations{0};

// Neither is inlined: GCC would warn of memory from new that is freed.
[[gnu::noinline]] void* Allocate(size_t bytes, size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* data = nullptr;
  if (posix_memalign(&data, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes) != 0)
    std::abort();
  return data;
}

[[gnu::noinline]] void Release(void* data) { std::free(data); }

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t a) {
  return Allocate(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a) {
  return Allocate(bytes, static_cast<size_t>(a));
}
void operator delete(void* data) noexcept { Release(data); }
void operator delete[](void* data) noexcept { Release(data); }
void operator delete(void* data, size_t) noexcept { Release(data); }
void operator delete[](void* data, size_t) noexcept { Release(data); }
void operator delete(void* data, std::align_val_t) noexcept { Release(data); }
void operator delete[](void* data, std::align_val_t) noexcept { Release(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { Release(data); }
void operator delete[](void* data, size_t, std::align_val_t) noexcept { Release(data); }

namespace vivace {
namespace {

class ExecutorAllocationTest : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Tiers, ExecutorAllocationTest, ::testing::ValuesIn(testing::Tiers()),
                         [](const auto& info) { return std::string(Name(info.param)); });

// One sequence's item of a hand-made plan: all of its tokens, in blocks of its own.
void AddItem(StepPlan* plan, int32_t slot, int32_t tokens, LogitRows rows) {
  PlanItem item{.slot = SeqSlot(slot),
                .first_token = static_cast<int32_t>(plan->tokens.size()),
                .num_tokens = tokens,
                .first_block = static_cast<int32_t>(plan->block_ids.size()),
                .num_blocks = (tokens + 15) / 16,
                .logit_rows = rows,
                .sample = rows != LogitRows::kNone};
  for (int32_t i = 0; i < tokens; ++i) plan->tokens.push_back((slot * 31 + i) % 260);
  for (int32_t i = 0; i < item.num_blocks; ++i) {
    plan->block_ids.emplace_back(static_cast<int32_t>(plan->block_ids.size()));
  }
  plan->items.push_back(item);
}

TEST_P(ExecutorAllocationTest, AStepAllocatesNothing) {
  const testing::TinyModel model({.context = 512});
  EngineConfig config = testing::TestConfig(GetParam(), 3);
  const auto executor = testing::MakeExecutor(config, model.file());
  SamplingParams params;
  params.top_p = 0.9f;
  params.top_k = 40;
  params.min_p = 0.01f;
  params.frequency_penalty = 0.5f;
  params.repetition_penalty = 1.1f;
  params.logit_bias = {{3, 1.0f}};
  params.min_tokens = 5;
  params.stop_token_ids = {4, 5};
  params.max_tokens = 100;
  params.logprobs = 20;
  params.prompt_logprobs = 20;
  for (TokenId token = 0; token < 200; ++token) params.allowed_token_ids.push_back(token);
  params.bad_words = {{7, 8, 9}, {10}};
  const std::vector<TokenId> prompt(300, 1);
  std::vector<testing::FakeConstraint> constraints;
  constraints.reserve(20);
  for (int i = 0; i < 20; ++i) {
    constraints.emplace_back(testing::FakeRules{.vocab = model.file().spec().vocab});
  }
  for (int32_t slot = 0; slot < 40; ++slot) {
    executor->BindSlot(
        SeqSlot(slot),
        {.params = params,
         .tokens = prompt,
         .prompt_len = 300,
         .constraint = slot < 20 ? &constraints[static_cast<size_t>(slot)] : nullptr});
  }

  StepPlan full,
      small;  // a full step is the first this result sees, and the small one comes between
  AddItem(&full, 0, 300, LogitRows::kAll);
  AddItem(&full, 1, 173, LogitRows::kAll);
  for (int32_t slot = 2; slot < 40; ++slot) AddItem(&full, slot, 1, LogitRows::kLast);
  AddItem(&small, 0, 5, LogitRows::kLast);
  StepResult result;
  executor->Launch(small);
  executor->Await(&result);

  const int64_t before = allocations.load();
  for (const StepPlan* plan : {&small, &full, &small, &full, &full}) {
    executor->Launch(*plan);
    executor->Await(&result);
  }
  const int64_t after = allocations.load();
  EXPECT_EQ(after - before, 0);
  EXPECT_EQ(result.sampled.size(), 40u);
  EXPECT_EQ(result.logprob_rows.size(), 299u + 172u + 40u);
}

TEST_P(ExecutorAllocationTest, PoolingAllocatesNothing) {
  const testing::TinyModel model({.context = 512});
  const auto executor = testing::MakeExecutor(testing::TestConfig(GetParam(), 3), model.file());
  const std::vector<TokenId> prompt(300, 1);
  for (int32_t slot = 0; slot < 2; ++slot) {
    executor->BindSlot(SeqSlot(slot), {.params = {}, .tokens = prompt, .prompt_len = 300});
  }
  StepPlan plan;
  AddItem(&plan, 0, 300, LogitRows::kPoolAll);
  AddItem(&plan, 1, 100, LogitRows::kPoolLast);
  for (PlanItem& item : plan.items) {
    item.sample = false;
    item.pool_ends = true;
  }
  StepResult results[2];
  for (StepResult& result : results) {
    executor->Launch(plan);
    executor->Await(&result);
  }
  const int64_t before = allocations.load();
  executor->Launch(plan);
  executor->Await(&results[0]);
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_EQ(results[0].pooled.size(), 2u);
}

TEST(ExecutorAllocationTest, TheCounterCounts) {
  const int64_t before = allocations.load();
  auto value = std::make_unique<int>(1);
  EXPECT_EQ(allocations.load() - before, 1) << *value;
}

}  // namespace
}  // namespace vivace
