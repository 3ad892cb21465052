#include "sched/chunk_budget.h"

#include <gtest/gtest.h>

namespace vivace {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int32_t kAll = 100'000;

// A machine: 4 ms, 1 ms a decode, 0.5 ms a prompt's token, 40 ns a position it attends to.
int64_t Time(int32_t decodes, int32_t position, int32_t count) {
  return 4 * kMs + decodes * kMs + count * kMs / 2 +
         40 * (int64_t{count} * position + int64_t{count} * (count + 1) / 2);
}

class ChunkBudgetTest : public testing::Test {
 protected:
  // A step with one chunk of a prompt, timed; returns its tokens.
  int32_t Step(int32_t decodes, int32_t position, int32_t wanted = kAll, double slower = 1.0) {
    budget.Begin(decodes, decodes * 100);
    const int32_t count = budget.Take({.position = position, .wanted = wanted});
    budget.Observe(
        static_cast<int64_t>(slower * static_cast<double>(Time(decodes, position, count))));
    return count;
  }
  void Learn() {
    for (int32_t i = 0; i < 40; ++i) {
      Step(8, i * 100);
      Step(0, i * 100, 50 + i * 10);
    }
  }

  ChunkBudget budget{50 * kMs};
};

TEST_F(ChunkBudgetTest, WithoutATargetEverythingFits) {
  ChunkBudget off(0);
  off.Begin(8, 800);
  EXPECT_TRUE(off.HasRoom(0));
  EXPECT_EQ(off.Take({.position = 0, .wanted = 2048}), 2048);
  EXPECT_EQ(off.Take({.position = 0, .wanted = 2048}), 2048);
  off.Observe(1'000 * kMs);
  off.Begin(8, 800);
  EXPECT_EQ(off.Take({.position = 0, .wanted = 2048}), 2048);
}

TEST_F(ChunkBudgetTest, BeforeAnyTimeIsKnownChunksAreSmall) {
  budget.Begin(1, 10);
  EXPECT_EQ(budget.Take({.position = 0, .wanted = kAll}), ChunkBudget::kUntimedChunk);
  EXPECT_FALSE(budget.HasRoom(0));
  budget.Begin(0, 0);
  EXPECT_EQ(budget.Take({.position = 0, .wanted = kAll}), ChunkBudget::kQuietChunk);
}

TEST_F(ChunkBudgetTest, ChunksFillTheTargetAndNoMore) {
  Learn();
  for (const int32_t decodes : {1, 4, 8, 16}) {
    for (const int32_t position : {0, 1'000, 4'000}) {
      const int64_t time = Time(decodes, position, Step(decodes, position));
      EXPECT_LE(time, 46 * kMs) << decodes << " decodes at " << position;
      EXPECT_GE(time, 35 * kMs) << decodes << " decodes at " << position;
    }
  }
  EXPECT_LT(Step(8, 8'000), Step(8, 0)) << "a later chunk costs more";
}

// The small chunks at a prompt's end do not tell what rows cost from what positions cost.
TEST_F(ChunkBudgetTest, ALongPromptsEndDoesNotMislead) {
  for (int32_t prompt = 0; prompt < 3; ++prompt) {
    for (int32_t position = 0; position < 4'000;) {
      const int32_t count = Step(8, position);
      EXPECT_LE(Time(8, position, count), 50 * kMs) << "prompt " << prompt << " at " << position;
      position += count;
    }
  }
}

TEST_F(ChunkBudgetTest, NeverMoreThanIsWanted) {
  Learn();
  EXPECT_EQ(Step(8, 0, 37), 37);
  EXPECT_EQ(Step(8, 0, 3), 3);
}

TEST_F(ChunkBudgetTest, PromptsAdvanceWhateverTheDecodesTake) {
  Learn();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Step(100, i * 16), ChunkBudget::kMinChunk);
  budget.Begin(100, 10'000);
  EXPECT_EQ(budget.Take({.position = 0, .wanted = kAll}), ChunkBudget::kMinChunk);
  EXPECT_FALSE(budget.HasRoom(0));
  EXPECT_EQ(budget.Take({.position = 0, .wanted = kAll}), 0);
}

TEST_F(ChunkBudgetTest, SeveralPromptsShareTheTime) {
  Learn();
  budget.Begin(8, 800);
  int32_t total = 0;
  int32_t prompts = 0;
  for (; budget.HasRoom(20); ++prompts) total += budget.Take({.position = 0, .wanted = 20});
  EXPECT_GE(prompts, 2);
  EXPECT_LE(Time(8, 0, total), 48 * kMs);
}

// Nobody waits for a token, but someone may arrive.
TEST_F(ChunkBudgetTest, WithoutDecodesAStepMayLastSomeTargets) {
  Learn();
  const int64_t time = Time(0, 0, Step(0, 0));
  EXPECT_LE(time, ChunkBudget::kQuietTargets * 50 * kMs * 11 / 10);
  EXPECT_GE(time, ChunkBudget::kQuietTargets * 50 * kMs * 8 / 10);
  for (int i = 0; i < 100; ++i) {
    Step(8, 0, kAll, 20.0);
    Step(0, 0, kAll, 20.0);
  }
  EXPECT_EQ(Step(0, 0), ChunkBudget::kQuietChunk) << "however slow, worth its fixed cost";
}

TEST_F(ChunkBudgetTest, AllLogitsCountAsTime) {
  for (int32_t i = 0; i < 60; ++i) {
    Step(8, i * 10);
    budget.Begin(8, 800);
    const ChunkBudget::Request request{.position = 0, .wanted = 20 + i % 8, .all_logits = true};
    const int32_t count = budget.Take(request);
    budget.Observe(Time(8, 0, count) + count * kMs);
  }
  budget.Begin(8, 800);
  const int32_t count = budget.Take({.position = 0, .wanted = kAll, .all_logits = true});
  EXPECT_LE(Time(8, 0, count) + count * kMs, 50 * kMs);
  EXPECT_LT(count, Step(8, 0));
}

TEST_F(ChunkBudgetTest, UnsteadyTimesMakeRoomForThemselvesAndAreForgotten) {
  Learn();
  const int32_t steady = Step(8, 0);
  for (int i = 0; i < 60; ++i) Step(8, 0, kAll, i % 5 == 0 ? 1.4 : 1.0);
  const int32_t careful = Step(8, 0);
  EXPECT_LT(careful, steady);
  EXPECT_GE(careful, ChunkBudget::kMinChunk);
  for (int i = 0; i < 200; ++i) Step(8, 0);
  EXPECT_GE(Step(8, 0), steady - ChunkBudget::kMinChunk);
}

// A margin is for steps that can be made shorter: slow decodes alone and a prompt's small rest do
// not widen it.
TEST_F(ChunkBudgetTest, OnlyStepsTheLimitShapesTellAboutIt) {
  Learn();
  const int32_t steady = Step(8, 0);
  for (int i = 0; i < 50; ++i) Step(100, 0);  // far over the target, whatever the chunk
  for (int i = 0; i < 50; ++i) Step(8, 0, 16, i % 2 ? 3.0 : 1.0);  // far under the limit
  for (int i = 0; i < 32; ++i) Step(8, i * 100, 60);  // the model forgets the slow ones
  EXPECT_GE(Step(8, 0), steady - 2);
}

}  // namespace
}  // namespace vivace
