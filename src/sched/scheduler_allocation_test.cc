// Plan and Commit must not allocate: counted by replacing the global operator new of this program,
// and the allocator of OpenSSL, which does the hashing.
#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <array>
#include <cstdlib>
#include <new>

#include "sched/scheduler.h"

namespace {

thread_local bool counting = false;
thread_local int64_t allocations = 0;

void* Allocate(size_t bytes) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void* CryptoAllocate(size_t bytes, const char*, int) { return Allocate(bytes); }
void* CryptoReallocate(void* memory, size_t bytes, const char*, int) {
  if (counting) ++allocations;
  return std::realloc(memory, bytes);
}
void CryptoFree(void* memory, const char*, int) { std::free(memory); }

// OpenSSL takes another allocator only before it first uses its own.
const bool crypto_is_counted =
    CRYPTO_set_mem_functions(CryptoAllocate, CryptoReallocate, CryptoFree) == 1;

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace vivace {
namespace {

// Starts, prefix hits, preemptions, ends, aborts: all in steps that allocate nothing.
void ExpectStepsAllocateNothing(const KvWindows& windows, int32_t num_blocks) {
  allocations = 0;
  SchedulerConfig config;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 32;
  config.max_model_len = 128;
  config.max_itl_ns = 5'000'000;
  config.kv = {
      .num_blocks = num_blocks, .block_size = 8, .enable_prefix_caching = true, .windows = windows};
  Scheduler scheduler(config);
  StepPlan plan;
  PlanChanges changes;
  StepResult result;
  Effects effects;
  scheduler.Reserve(&plan, &changes, &effects);
  result.sampled.reserve(8);

  int64_t steps = 0;
  for (SeqKey key = 0; key < 60; ++key) {
    const std::vector<TokenId> prompt(20 + key / 2 % 13, static_cast<TokenId>(key / 2 % 3));
    NewSequence sequence;
    sequence.key = key;
    sequence.group = key / 2;
    sequence.choice = static_cast<int32_t>(key % 2);
    sequence.prompt = prompt;
    sequence.max_tokens = 40;
    scheduler.Add(sequence);
    if (key % 7 == 3) scheduler.Abort(key - 1);

    counting = true;
    for (int i = 0; i < (key == 59 ? 5'000 : 20) && !scheduler.idle(); ++i) {
      scheduler.Plan(&plan, &changes);
      if (plan.empty()) continue;
      result.Clear();
      result.step = plan.step;
      result.elapsed_ns = 1'000'000 + 200'000 * static_cast<int64_t>(plan.tokens.size());
      for (size_t item = 0; item < plan.items.size(); ++item) {
        if (!plan.items[item].sample) continue;
        result.sampled.push_back({.item = static_cast<int32_t>(item), .token = 5, .error = {}});
      }
      scheduler.Commit(plan, result, &effects);
      for (const Effects::Output& output : effects.outputs) {
        const bool some =
            output.finish == SeqFinish::kNone && output.key % 5 == 1 && steps % 7 == 0;
        if (some) scheduler.Append(output.key, std::array<TokenId, 1>{6}, false);
      }
      ++steps;
    }
    counting = false;
  }
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(allocations, 0) << "in " << steps << " steps";
  EXPECT_GT(scheduler.stats().preemptions, 0);
  EXPECT_GT(scheduler.stats().prefix_hits, 0);
}

TEST(SchedulerAllocation, StepsAllocateNothing) { ExpectStepsAllocateNothing({}, 14); }

TEST(SchedulerAllocation, StepsOfWindowGroupsAllocateNothing) {
  ExpectStepsAllocateNothing({0, 12, 30}, 30);
}

TEST(SchedulerAllocation, TheCounterCounts) {
  allocations = 0;
  // Called as functions: a new expression may be left out.
  counting = true;
  ::operator delete(::operator new(1));
  OPENSSL_free(OPENSSL_malloc(1));
  counting = false;
  EXPECT_TRUE(crypto_is_counted);
  EXPECT_EQ(allocations, 2);
}

}  // namespace
}  // namespace vivace
