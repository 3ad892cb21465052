#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace vivace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = std::vector<TokenId>;

constexpr TokenId kText = 7;  // what the fake executor samples
constexpr TokenId kEos = 2;

Tokens Prompt(int32_t n, TokenId first = 1000) {
  Tokens tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// 16 blocks of 16 tokens, as in the bug cases.
SchedulerConfig SmallConfig() {
  SchedulerConfig config;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 64;
  config.max_model_len = 8192;
  config.kv = {.num_blocks = 16, .block_size = 16, .enable_prefix_caching = true};
  return config;
}

// Drives a scheduler with an executor that samples `next`.
class SchedulerTest : public testing::Test {
 protected:
  void Start(const SchedulerConfig& config) {
    scheduler = std::make_unique<Scheduler>(config);
    scheduler->Reserve(&plan, &changes, &effects);
  }

  void Add(SeqKey key, const Tokens& prompt, int32_t max_tokens, int32_t priority = 0) {
    NewSequence sequence;
    sequence.key = sequence.group = key;
    sequence.prompt = prompt;
    sequence.max_tokens = max_tokens;
    sequence.priority = priority;
    scheduler->Add(sequence);
  }

  void Plan() {
    scheduler->Plan(&plan, &changes);
    for (const PlanChanges::Bound& bound : changes.bound) {
      key_of[bound.slot] = bound.key;
      cached[bound.key] = bound.cached_tokens;
    }
    EXPECT_EQ(scheduler->CheckInvariants(), "");
  }

  void Commit(TokenId token = kText, SampleError error = SampleError::kNone) {
    result.Clear();
    result.step = plan.step;
    result.elapsed_ns = ns_per_token * static_cast<int64_t>(plan.tokens.size());
    for (size_t i = 0; i < plan.items.size(); ++i) {
      if (!plan.items[i].sample) continue;
      result.sampled.push_back({.item = static_cast<int32_t>(i),
                                .token = error == SampleError::kNone ? token : -1,
                                .error = error});
    }
    scheduler->Commit(plan, result, &effects);
    for (const Effects::Output& output : effects.outputs) {
      if (output.token >= 0) ++outputs[output.key];
      if (output.finish != SeqFinish::kNone) {
        EXPECT_EQ(finished.count(output.key), 0u) << "two ends of " << output.key;
        finished[output.key] = output.finish;
      }
    }
    EXPECT_EQ(scheduler->CheckInvariants(), "");
  }

  void Step(TokenId token = kText) {
    Plan();
    if (!plan.empty()) Commit(token);
  }

  // Steps until idle; the number of steps.
  int32_t Drain(int32_t at_most = 10'000) {
    int32_t steps = 0;
    while (!scheduler->idle() && steps < at_most) {
      Step();
      ++steps;
    }
    EXPECT_TRUE(scheduler->idle());
    return steps;
  }

  void ExpectIdle() {
    const SchedulerStats stats = scheduler->stats();
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.waiting, 0);
    EXPECT_EQ(stats.blocks_used, 0);
  }

  std::unique_ptr<Scheduler> scheduler;
  StepPlan plan;
  PlanChanges changes;
  StepResult result;
  Effects effects;
  std::map<SeqSlot, SeqKey> key_of;
  std::map<SeqKey, int32_t> cached;
  std::map<SeqKey, int32_t> outputs;
  std::map<SeqKey, SeqFinish> finished;
  int64_t ns_per_token = 0;  // what steps take; 0: nobody measures
};

// --- what can run at all (bug case 8.1 a, b; 8.3)
// -------------------------------------------------

TEST_F(SchedulerTest, SaysWhatCanNeverFit) {
  Start(SmallConfig());
  EXPECT_FALSE(scheduler->CanEverFit(300, 1));    // 8.1 a
  EXPECT_FALSE(scheduler->CanEverFit(200, 100));  // 8.1 b
  EXPECT_TRUE(scheduler->CanEverFit(256, 1));     // the last output is never fed
  EXPECT_FALSE(scheduler->CanEverFit(256, 2));
  EXPECT_TRUE(scheduler->CanEverFit(200, 57));
  EXPECT_FALSE(scheduler->CanEverFit(200, 58));
  EXPECT_FALSE(scheduler->CanEverFit(0, 1));
  EXPECT_FALSE(scheduler->CanEverFit(4, -1));
  EXPECT_FALSE(scheduler->CanEverFit(INT64_MAX, INT64_MAX));

  SchedulerConfig context = SmallConfig();
  context.max_model_len = 100;
  EXPECT_TRUE(Scheduler::CanEverFit(context, 99, 1));
  EXPECT_FALSE(Scheduler::CanEverFit(context, 100, 1));
  EXPECT_TRUE(Scheduler::CanEverFit(context, 100, 0));
}

TEST_F(SchedulerTest, WhatJustFitsRunsToItsLengthAlone) {
  Start(SmallConfig());
  Add(1, Prompt(200), 57);
  Drain();
  EXPECT_EQ(outputs[1], 57);
  EXPECT_EQ(finished[1], SeqFinish::kLength);
  EXPECT_EQ(scheduler->stats().preemptions, 0);
  ExpectIdle();
}

TEST_F(SchedulerTest, TheContextsEndIsLength) {
  SchedulerConfig config = SmallConfig();
  config.max_model_len = 20;
  Start(config);
  Add(1, Prompt(18), 100);
  Drain();
  EXPECT_EQ(outputs[1], 2);
  EXPECT_EQ(finished[1], SeqFinish::kLength);
}

// --- budget, mixing, chunks
// -----------------------------------------------------------------------

TEST_F(SchedulerTest, DecodesGoFirstAndPromptsFillTheRest) {
  Start(SmallConfig());
  Add(1, Prompt(4, 0), 50);
  Step();
  Add(2, Prompt(100, 500), 4);
  Plan();
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.decode_tokens, 1);
  EXPECT_EQ(plan.prefill_tokens, 63);
  EXPECT_EQ(plan.items[0].num_tokens, 1);
  EXPECT_EQ(plan.items[0].first_position, 4);
  EXPECT_EQ(plan.tokens[0], kText);
  EXPECT_EQ(plan.items[1].logit_rows, LogitRows::kNone);
  EXPECT_EQ(plan.items[1].num_blocks, 4);
  Commit();
  Plan();
  EXPECT_EQ(plan.items[1].first_position, 63);
  EXPECT_EQ(plan.items[1].num_tokens, 37);
  EXPECT_TRUE(plan.items[1].sample);
  EXPECT_EQ(plan.items[1].logit_rows, LogitRows::kLast);
}

TEST_F(SchedulerTest, ABudgetOfOneStillServesAll) {
  SchedulerConfig config = SmallConfig();
  config.max_num_batched_tokens = 1;
  Start(config);
  for (SeqKey key = 1; key <= 3; ++key) Add(key, Prompt(5), 3);
  Drain();
  for (SeqKey key = 1; key <= 3; ++key) EXPECT_EQ(outputs[key], 3);
}

// 8.1 c: prompts without pause do not stop a running stream.
TEST_F(SchedulerTest, AFloodOfPromptsDoesNotStopAStream) {
  SchedulerConfig config = SmallConfig();
  config.kv.num_blocks = 48;
  Start(config);
  Add(1, Prompt(4), 200);
  Step();
  SeqKey next = 2;
  for (int32_t step = 1; step < 200; ++step) {
    Add(next, Prompt(150, static_cast<TokenId>(next * 1000)), 1);
    ++next;
    Step();
    ASSERT_EQ(outputs[1], step + 1) << "the stream missed a step";
  }
  EXPECT_EQ(finished[1], SeqFinish::kLength);
  Drain();
  ExpectIdle();
}

// 8.1 d: small requests behind a long one wait a bounded number of steps.
TEST_F(SchedulerTest, SmallRequestsBehindALongOneWaitBoundedly) {
  Start(SmallConfig());
  Add(1, Prompt(150), 20);
  for (SeqKey key = 2; key <= 11; ++key) Add(key, Prompt(4, static_cast<TokenId>(key * 10)), 4);
  for (int step = 0; step < 20; ++step) Step();
  for (SeqKey key = 2; key <= 11; ++key) EXPECT_EQ(finished.count(key), 1u) << key;
  Drain();
  ExpectIdle();
}

// --- chunks held to a time (see chunk_budget_test.cc for the sizes)
// ----------------------------------------------------------------------------------------

class MaxItlTest : public SchedulerTest {
 protected:
  // A millisecond a token.
  void StartStreams(int32_t count, int64_t max_itl_ms) {
    SchedulerConfig config = SmallConfig();
    config.max_num_batched_tokens = 512;
    config.kv.num_blocks = 200;
    config.max_itl_ns = max_itl_ms * 1'000'000;
    ns_per_token = 1'000'000;
    Start(config);
    for (int32_t i = 0; i < count; ++i) Add(static_cast<SeqKey>(i + 1), Prompt(4), 500);
    for (int32_t i = 0; i < 10; ++i) Step();
  }
};

TEST_F(MaxItlTest, ALongPromptAdvancesByWhatTheTargetLeaves) {
  StartStreams(4, 50);
  Add(50, Prompt(1000, 5000), 2);
  int32_t steps = 0;
  for (; outputs[50] == 0; ++steps) {
    Step();
    EXPECT_LE(plan.tokens.size(), 46u);
    EXPECT_EQ(plan.decode_tokens, 4) << "a stream missed a step";
  }
  EXPECT_LE(steps, 30) << "1000 tokens by 40 at a time";
  EXPECT_EQ(scheduler->stats().mixed_steps, steps);
  EXPECT_EQ(scheduler->stats().mixed_prompt_tokens, 1000);
}

TEST_F(MaxItlTest, WithoutDecodesTheStepIsLarger) {
  StartStreams(0, 50);
  Add(1, Prompt(1000, 5000), 2);
  Plan();
  EXPECT_EQ(plan.prefill_tokens, 256);
  Commit();
  Plan();
  EXPECT_EQ(plan.prefill_tokens, 256) << "the least, though 200 tokens take the time";
}

// A sequence that the step has no time for takes no slot either.
TEST_F(MaxItlTest, TheNextPromptStartsWhenThereIsTimeForIt) {
  StartStreams(2, 30);
  Add(50, Prompt(100, 5000), 2);
  Add(51, Prompt(100, 9000), 2);
  Step();
  EXPECT_EQ(scheduler->stats().running, 3);
  EXPECT_EQ(scheduler->stats().waiting, 1);
  while (cached.count(51) == 0) Step();
  EXPECT_EQ(finished.count(50) + static_cast<size_t>(outputs[50]), 1u)
      << "in the step that ended the first";
}

// The least chunk is the first prompt's; others join while there is time.
TEST_F(MaxItlTest, ShortPromptsGoTogether) {
  StartStreams(2, 50);
  for (SeqKey key = 50; key < 56; ++key) Add(key, Prompt(6, static_cast<TokenId>(key * 10)), 1);
  Step();
  EXPECT_GE(scheduler->stats().running + static_cast<int64_t>(finished.size()), 2 + 4);
}

// --- order
// ----------------------------------------------------------------------------------------

TEST_F(SchedulerTest, PriorityThenArrival) {
  SchedulerConfig config = SmallConfig();
  config.max_num_seqs = 1;
  Start(config);
  Add(1, Prompt(4), 2);
  Step();
  Add(2, Prompt(4, 20), 1);
  Add(3, Prompt(4, 30), 1, -1);
  Add(4, Prompt(4, 40), 1, -1);
  std::vector<SeqKey> order;
  while (!scheduler->idle()) {
    Step();
    for (const Effects::Output& output : effects.outputs) {
      if (output.finish != SeqFinish::kNone) order.push_back(output.key);
    }
  }
  EXPECT_THAT(order, ElementsAre(1, 3, 4, 2));
}

TEST_F(SchedulerTest, AHeadThatDoesNotFitIsNotOvertaken) {
  Start(SmallConfig());
  Add(1, Prompt(100, 0), 30);
  Step();
  Add(2, Prompt(200, 1000), 2);
  Add(3, Prompt(4, 3000), 2);
  while (finished.count(1) == 0) {
    EXPECT_EQ(cached.count(3), 0u);
    Step();
    EXPECT_EQ(scheduler->wait_cause(), WaitCause::kKvRoom);
  }
  Step();
  EXPECT_EQ(cached.count(2), 1u);
  Drain();
  ExpectIdle();
}

TEST_F(SchedulerTest, SaysWhatTheNextOneWaitsFor) {
  SchedulerConfig config = SmallConfig();
  config.max_num_seqs = 2;
  Start(config);
  EXPECT_EQ(scheduler->wait_cause(), WaitCause::kNone);
  Add(1, Prompt(70, 0), 4);
  Add(2, Prompt(4, 1000), 4);
  Add(3, Prompt(4, 2000), 4);
  Step();
  EXPECT_EQ(scheduler->wait_cause(), WaitCause::kTokens) << "the first takes all of the step";
  Step();
  EXPECT_EQ(scheduler->wait_cause(), WaitCause::kSequences);
  Drain();
  EXPECT_EQ(scheduler->wait_cause(), WaitCause::kNone);
}

TEST_F(SchedulerTest, OutOfBlocksPreemptsTheLatestOfTheLowestPriority) {
  SchedulerConfig config = SmallConfig();
  config.kv.num_blocks = 6;
  config.kv.enable_prefix_caching = false;
  Start(config);
  Add(1, Prompt(15), 60, 1);  // first, but of low priority
  Step();
  Add(2, Prompt(15), 60);
  Step();
  std::vector<SeqKey> preempted;
  while (preempted.empty()) {
    Plan();
    preempted = changes.preempted;
    Commit();
  }
  EXPECT_THAT(preempted, ElementsAre(1));
  EXPECT_EQ(scheduler->stats().waiting, 1);
  const int32_t so_far = outputs[1];
  Drain();
  EXPECT_GT(so_far, 0);
  EXPECT_EQ(outputs[1], 60) << "what was generated before the preemption counts";
  EXPECT_EQ(outputs[2], 60);
  ExpectIdle();
}

TEST_F(SchedulerTest, APreemptedSequenceIsBoundAgainWithItsOutput) {
  SchedulerConfig config = SmallConfig();
  config.kv.num_blocks = 6;
  Start(config);
  Add(1, Prompt(15, 0), 60);
  Add(2, Prompt(15, 50), 60);
  while (scheduler->stats().preemptions == 0) Step();
  const int32_t so_far = outputs[2];
  bool back = false;
  while (!back) {
    Plan();
    for (const PlanChanges::Bound& bound : changes.bound) {
      EXPECT_EQ(bound.key, 2u);
      EXPECT_FALSE(bound.first_time);
      EXPECT_EQ(bound.prompt_len, 15);
      EXPECT_EQ(static_cast<int32_t>(bound.tokens.size()), 15 + so_far);
      back = true;
    }
    Commit();
  }
  EXPECT_EQ(scheduler->stats().prefix_queries, 30) << "looked up again, counted once";
  Drain();
}

// --- ends
// -----------------------------------------------------------------------------------------

TEST_F(SchedulerTest, StopIdsEndButNotBeforeMinTokens) {
  Start(SmallConfig());
  NewSequence sequence;
  const Tokens prompt = Prompt(4);
  const Tokens stops{kEos, 9};
  sequence.key = 1;
  sequence.prompt = prompt;
  sequence.max_tokens = 10;
  sequence.min_tokens = 2;
  sequence.stop_ids = stops;
  scheduler->Add(sequence);
  Step(kEos);
  Step(kEos);
  EXPECT_TRUE(finished.empty());
  Step(9);
  ASSERT_EQ(effects.outputs.size(), 1u);
  EXPECT_EQ(effects.outputs[0].token, 9);
  EXPECT_EQ(effects.outputs[0].finish, SeqFinish::kStop);
  EXPECT_EQ(effects.outputs[0].stop_token, 9);
  ExpectIdle();
}

TEST_F(SchedulerTest, AStopIdAsLastTokenIsStop) {
  Start(SmallConfig());
  NewSequence sequence;
  const Tokens prompt = Prompt(4);
  const Tokens stops{kEos};
  sequence.prompt = prompt;
  sequence.max_tokens = 1;
  sequence.stop_ids = stops;
  scheduler->Add(sequence);
  Step(kEos);
  EXPECT_EQ(finished[0], SeqFinish::kStop);
}

TEST_F(SchedulerTest, NonFiniteLogitsEndOneSequenceAndAreNotCached) {
  Start(SmallConfig());
  Add(1, Prompt(40), 10);
  Plan();
  Commit(kText, SampleError::kNonFiniteLogits);
  EXPECT_EQ(finished[1], SeqFinish::kError);
  EXPECT_EQ(outputs[1], 0);
  EXPECT_EQ(scheduler->stats().blocks_cached, 0);
  ExpectIdle();
}

TEST_F(SchedulerTest, NoOutputWantedEndsWithThePromptAndSamplesNothing) {
  Start(SmallConfig());
  NewSequence sequence;
  const Tokens prompt = Prompt(70);
  sequence.key = 1;
  sequence.prompt = prompt;
  sequence.prompt_logprobs = true;
  scheduler->Add(sequence);
  Plan();
  EXPECT_EQ(plan.items[0].logit_rows, LogitRows::kAll);
  EXPECT_EQ(plan.items[0].next_prompt_token, prompt[64]);
  EXPECT_FALSE(plan.items[0].sample);
  Commit();
  EXPECT_THAT(effects.outputs, IsEmpty());
  Plan();
  EXPECT_EQ(plan.items[0].next_prompt_token, -1);
  EXPECT_FALSE(plan.items[0].sample);
  Commit();
  EXPECT_EQ(finished[1], SeqFinish::kLength);
  EXPECT_EQ(outputs[1], 0);
}

TEST_F(SchedulerTest, PromptRowsAreForwardedByPosition) {
  Start(SmallConfig());
  NewSequence sequence;
  const Tokens prompt = Prompt(70);
  sequence.key = 1;
  sequence.prompt = prompt;
  sequence.max_tokens = 1;
  sequence.prompt_logprobs = true;
  scheduler->Add(sequence);
  Step();
  Plan();
  result.Clear();
  result.step = plan.step;
  result.logprob_rows.resize(9);
  result.prompt_rows.push_back({.item = 0, .first = 3, .count = 5});
  result.sampled.push_back({.item = 0, .token = kText, .error = {}, .logprob_row = 8});
  scheduler->Commit(plan, result, &effects);
  ASSERT_EQ(effects.prompt_rows.size(), 1u);
  EXPECT_EQ(effects.prompt_rows[0].first_position, 65);
  EXPECT_EQ(effects.prompt_rows[0].first_row, 3);
  EXPECT_EQ(effects.prompt_rows[0].count, 5);
  EXPECT_EQ(effects.outputs[0].logprob_row, 8);
}

// --- appended output
// -----------------------------------------------------------------------------------------

// --- pooled prompts
// -----------------------------------------------------------------------------------------

TEST_F(SchedulerTest, APooledPromptSamplesNothing) {
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    Start(SmallConfig());
    NewSequence sequence;
    const Tokens prompt = Prompt(70);
    sequence.key = 1;
    sequence.prompt = prompt;
    sequence.pooling = pooling;
    scheduler->Add(sequence);
    Plan();
    ASSERT_EQ(plan.items.size(), 1u);
    const bool mean = pooling == Pooling::kMean;
    EXPECT_EQ(plan.items[0].logit_rows, mean ? LogitRows::kPoolAll : LogitRows::kNone);
    EXPECT_EQ(plan.items[0].end_logit_row() - plan.items[0].first_logit_row(), mean ? 64 : 0);
    EXPECT_FALSE(plan.items[0].pool_ends);
    Commit();
    EXPECT_THAT(effects.outputs, IsEmpty());
    Plan();
    EXPECT_EQ(plan.items[0].logit_rows, mean ? LogitRows::kPoolAll : LogitRows::kPoolLast);
    EXPECT_EQ(plan.items[0].end_logit_row() - plan.items[0].first_logit_row(), mean ? 6 : 1);
    EXPECT_TRUE(plan.items[0].pool_ends);
    EXPECT_FALSE(plan.items[0].sample);
    const std::vector<float> vector = {1, 2};
    result.Clear();
    result.step = plan.step;
    result.pooled.push_back({.item = 0, .values = vector});
    scheduler->Commit(plan, result, &effects);
    ASSERT_EQ(effects.pooled.size(), 1u);
    EXPECT_EQ(effects.pooled[0].key, 1u);
    EXPECT_EQ(effects.pooled[0].values.data(), vector.data());
    ASSERT_EQ(effects.outputs.size(), 1u);
    EXPECT_EQ(effects.outputs[0].token, -1);
    EXPECT_EQ(effects.outputs[0].finish, SeqFinish::kLength);
    ExpectIdle();
  }
}

class AppendTest : public SchedulerTest {
 protected:
  Scheduler::Appended Append(SeqKey key, const Tokens& tokens, bool complete = false) {
    const auto appended = scheduler->Append(key, tokens, complete);
    outputs[key] += appended.count;
    if (appended.finish != SeqFinish::kNone) finished[key] = appended.finish;
    EXPECT_EQ(scheduler->CheckInvariants(), "");
    return appended;
  }
};

TEST_F(AppendTest, ItIsOneChunkBehindTheDecodes) {
  Start(SmallConfig());
  Add(1, Prompt(20, 0), 50);
  Add(2, Prompt(4, 100), 50);
  Step();
  EXPECT_EQ(Append(1, {30, 31, 32}).count, 3);
  Add(3, Prompt(100, 500), 4);
  Plan();
  ASSERT_EQ(plan.items.size(), 3u);
  EXPECT_EQ(plan.decode_tokens, 1);
  EXPECT_EQ(plan.appended_tokens, 4);
  EXPECT_EQ(plan.prefill_tokens, 64 - 5);
  EXPECT_EQ(plan.items[0].first_position, 4);
  EXPECT_EQ(plan.items[1].first_position, 20);
  EXPECT_EQ(plan.items[1].num_tokens, 4);
  EXPECT_TRUE(plan.items[1].sample);
  EXPECT_EQ(plan.items[1].logit_rows, LogitRows::kLast);
  EXPECT_THAT(Tokens(plan.tokens.begin() + 1, plan.tokens.begin() + 5),
              ElementsAre(kText, 30, 31, 32));
  Commit();
  EXPECT_EQ(outputs[1], 5);
  Plan();
  EXPECT_EQ(plan.decode_tokens, 2);
  EXPECT_EQ(plan.appended_tokens, 0);
  Commit();
  Drain();
  EXPECT_EQ(outputs[1], 50);
  ExpectIdle();
}

// At least a token each in every step, whatever else there is; half of the rest is for prompts.
TEST_F(AppendTest, ASmallBudgetTakesItInTurns) {
  SchedulerConfig config = SmallConfig();
  config.max_num_batched_tokens = 8;
  Start(config);
  for (SeqKey key = 1; key <= 2; ++key) Add(key, Prompt(4, static_cast<TokenId>(key * 10)), 60);
  while (outputs[1] == 0 || outputs[2] == 0) Step();
  for (SeqKey key = 1; key <= 2; ++key) Append(key, Tokens(9, 5));
  Add(3, Prompt(40, 500), 4);
  Plan();
  ASSERT_EQ(plan.items.size(), 3u);
  EXPECT_EQ(plan.items[0].num_tokens, 4) << "one, and all of half the rest";
  EXPECT_FALSE(plan.items[0].sample);
  EXPECT_EQ(plan.items[0].logit_rows, LogitRows::kNone);
  EXPECT_EQ(plan.items[1].num_tokens, 1);
  EXPECT_EQ(plan.prefill_tokens, 3);
  Commit();
  Drain();
  EXPECT_EQ(outputs[1], 60);
  EXPECT_EQ(outputs[2], 60);
  ExpectIdle();
}

TEST_F(AppendTest, ABudgetOfOneServesItToo) {
  SchedulerConfig config = SmallConfig();
  config.max_num_batched_tokens = 1;
  Start(config);
  Add(1, Prompt(5), 20);
  while (outputs[1] == 0) Step();
  Append(1, Tokens(7, 5));
  Drain();
  EXPECT_EQ(outputs[1], 20);
}

TEST_F(AppendTest, EndsAtTheLengthAtAStopIdAndWhenComplete) {
  Start(SmallConfig());
  const Tokens prompt = Prompt(4);
  const Tokens stops{kEos};
  for (SeqKey key = 1; key <= 4; ++key) {
    NewSequence sequence;
    sequence.key = sequence.group = key;
    sequence.prompt = prompt;
    sequence.max_tokens = 6;
    sequence.stop_ids = stops;
    scheduler->Add(sequence);
  }
  Step();
  const auto full = Append(1, Tokens(5, 9));
  EXPECT_EQ(full.count, 5);
  EXPECT_EQ(full.finish, SeqFinish::kLength);
  const auto stopped = Append(2, {9, kEos, 9, 9});
  EXPECT_EQ(stopped.count, 2);
  EXPECT_EQ(stopped.finish, SeqFinish::kStop);
  EXPECT_EQ(stopped.stop_token, kEos);
  const auto complete = Append(3, {9, 9}, true);
  EXPECT_EQ(complete.count, 2);
  EXPECT_EQ(complete.finish, SeqFinish::kStop);
  EXPECT_EQ(complete.stop_token, -1);
  EXPECT_EQ(Append(99, {1}).count, 0) << "unknown";
  Drain();
  EXPECT_EQ(outputs[4], 6);
  ExpectIdle();
}

TEST_F(AppendTest, BeforeTheFirstStepItJoinsThePrompt) {
  Start(SmallConfig());
  Add(1, Prompt(20, 0), 50);
  Append(1, {30, 31});
  Plan();
  ASSERT_EQ(changes.bound.size(), 1u);
  EXPECT_EQ(changes.bound[0].prompt_len, 20);
  EXPECT_EQ(changes.bound[0].tokens.size(), 22u);
  EXPECT_EQ(plan.prefill_tokens, 22);
  EXPECT_TRUE(plan.items[0].sample);
  Commit();
  Drain();
  EXPECT_EQ(outputs[1], 50);
}

TEST_F(AppendTest, ItPreemptsAndIsPreemptedAsDecodesAre) {
  SchedulerConfig config = SmallConfig();
  config.kv.num_blocks = 8;
  config.kv.enable_prefix_caching = false;
  Start(config);
  Add(1, Prompt(15, 0), 80);
  Add(2, Prompt(15, 100), 80);
  Step();
  Append(1, Tokens(50, 5));
  Append(2, Tokens(50, 6));
  Plan();
  EXPECT_THAT(changes.preempted, ElementsAre(2));
  Commit();
  Drain();
  EXPECT_EQ(outputs[1], 80);
  EXPECT_EQ(outputs[2], 80);
  ExpectIdle();
}

TEST_F(SchedulerTest, AConstraintsEndIsAStop) {
  Start(SmallConfig());
  Add(1, Prompt(4), 10);
  Plan();
  result.Clear();
  result.step = plan.step;
  result.sampled.push_back({.item = 0, .token = kText, .ends = true});
  scheduler->Commit(plan, result, &effects);
  ASSERT_EQ(effects.outputs.size(), 1u);
  EXPECT_EQ(effects.outputs[0].token, kText);
  EXPECT_EQ(effects.outputs[0].finish, SeqFinish::kStop);
  EXPECT_EQ(effects.outputs[0].stop_token, -1);
  ExpectIdle();
}

// --- abort (bug case 8.2)
// -------------------------------------------------------------------------

TEST_F(SchedulerTest, AbortWorksInEveryStateAndTwice) {
  SchedulerConfig config = SmallConfig();
  config.max_num_seqs = 2;
  Start(config);
  Add(1, Prompt(4, 0), 50);
  Add(2, Prompt(150, 1000), 50);
  Add(3, Prompt(4, 5000), 50);
  Step();
  for (const SeqKey key : {3, 2, 1, 1, 2, 3, 99}) {  // waiting, in prefill, decoding, gone, unknown
    scheduler->Abort(static_cast<SeqKey>(key));
    EXPECT_EQ(scheduler->CheckInvariants(), "");
  }
  ExpectIdle();
  Plan();
  EXPECT_TRUE(plan.empty());
  EXPECT_EQ(changes.released.size(), 2u);
  EXPECT_THAT(finished, IsEmpty());
}

// H4: blocks of a step in flight are fenced.
TEST_F(SchedulerTest, AbortInFlightKeepsTheBlocksUntilCommit) {
  Start(SmallConfig());
  Add(1, Prompt(40), 50);
  Plan();
  scheduler->Abort(1);
  EXPECT_EQ(scheduler->stats().blocks_used, 3);
  for (const BlockId block : plan.block_ids) {
    EXPECT_EQ(scheduler->kv().pool().ref_count(block), 1);
  }
  Commit();
  EXPECT_THAT(effects.outputs, IsEmpty());
  ExpectIdle();
}

// --- prefix cache
// ---------------------------------------------------------------------------------

TEST_F(SchedulerTest, ASecondRequestFindsThePromptAndItsOwnSaltOnly) {
  Start(SmallConfig());
  const Tokens prompt = Prompt(40);
  for (SeqKey key = 1; key <= 4; ++key) {
    NewSequence sequence;
    sequence.key = sequence.group = key;
    sequence.prompt = prompt;
    sequence.max_tokens = 1;
    sequence.cache_salt = key >= 3 ? "tenant" : "";
    scheduler->Add(sequence);
    Drain();
  }
  EXPECT_EQ(cached[1], 0);
  EXPECT_EQ(cached[2], 32);
  EXPECT_EQ(cached[3], 0);
  EXPECT_EQ(cached[4], 32);
  EXPECT_EQ(scheduler->stats().prefix_queries, 160);
  EXPECT_EQ(scheduler->stats().prefix_hits, 64);
}

// --- window groups (see kv/kv_window_groups_test.cc) ---------------------------------------------

class WindowsTest : public AppendTest {
 protected:
  // A full group and three with a window of 20 tokens.
  static SchedulerConfig Windows(int32_t num_blocks) {
    SchedulerConfig config = SmallConfig();
    config.kv.num_blocks = num_blocks;
    config.kv.windows = {0, 20, 20, 20};
    return config;
  }
};

TEST_F(WindowsTest, FitIsCountedOverTheGroups) {
  // A window and a chunk of 64 touch (19 + 64 + 14) / 16 + 1 = 7 blocks.
  const SchedulerConfig config = Windows(20 + 3 * 7);
  EXPECT_TRUE(Scheduler::CanEverFit(config, 320, 1));
  EXPECT_FALSE(Scheduler::CanEverFit(config, 320, 2));
  EXPECT_TRUE(Scheduler::CanEverFit(Windows(16), 64, 1)) << "short ones need less than a window";
  EXPECT_FALSE(Scheduler::CanEverFit(Windows(15), 64, 1));
}

TEST_F(WindowsTest, APlanHasATableForEachGroup) {
  Start(Windows(60));
  Add(1, Prompt(150), 30);
  Step();
  Step();
  Plan();
  ASSERT_EQ(plan.items.size(), 1u);
  const PlanItem& item = plan.items[0];
  EXPECT_EQ(item.first_position, 128);
  EXPECT_EQ(item.num_blocks, 10);
  ASSERT_EQ(plan.block_ids.size(), 40u);
  for (int32_t group = 0; group < 4; ++group) {
    for (int32_t i = 0; i < 10; ++i) {
      // Position 128 sees 109 and on.
      EXPECT_EQ(plan.block_ids[group * 10 + i].valid(), group == 0 || i >= 6) << group << " " << i;
    }
  }
  Commit();
  Drain();
  EXPECT_EQ(outputs[1], 30);
  ExpectIdle();
}

TEST_F(WindowsTest, WhatJustFitsRunsToItsLengthAlone) {
  Start(Windows(20 + 3 * 7));
  Add(1, Prompt(200), 121);
  Add(2, Prompt(200), 121);
  Drain();
  EXPECT_EQ(outputs[1], 121);
  EXPECT_EQ(outputs[2], 121);
  ExpectIdle();
}

// Four streams and their windows fit where four whole sequences would not.
TEST_F(WindowsTest, WindowsMakeRoom) {
  Start(Windows(4 * (10 + 3 * 3)));
  for (SeqKey key = 1; key <= 4; ++key) Add(key, Prompt(16, static_cast<TokenId>(key * 100)), 145);
  Drain();
  for (SeqKey key = 1; key <= 4; ++key) EXPECT_EQ(outputs[key], 145);
  EXPECT_EQ(scheduler->stats().preemptions, 0);
  ExpectIdle();
}

// A step computes no more of it than the budget, so no more is held of a window.
TEST_F(WindowsTest, AppendedOutputStaysWithinTheClaimsOfASmallBudget) {
  SchedulerConfig config = Windows(100);
  config.max_num_batched_tokens = 1;
  config.kv.windows = {0, 5};
  Start(config);
  Add(1, Prompt(5), 60);
  while (outputs[1] == 0) Step();
  Append(1, Tokens(50, 5));
  Drain();
  EXPECT_EQ(outputs[1], 60);
  ExpectIdle();
}

TEST_F(WindowsTest, AppendedOutputHasRoomInTheWindows) {
  Start(Windows(60));
  Add(1, Prompt(150), 100);
  while (outputs[1] == 0) Step();
  Append(1, Tokens(70, 5));
  Plan();
  EXPECT_EQ(plan.appended_tokens, 32);
  Commit();
  Drain();
  EXPECT_EQ(outputs[1], 100);
  ExpectIdle();
}

class ChoicesTest : public SchedulerTest {
 protected:
  void AddChoices(int32_t n, const Tokens& prompt) {
    for (int32_t choice = 0; choice < n; ++choice) {
      NewSequence sequence;
      sequence.key = static_cast<SeqKey>(choice + 1);
      sequence.group = 77;
      sequence.choice = choice;
      sequence.prompt = prompt;
      sequence.max_tokens = 5;
      scheduler->Add(sequence);
    }
  }
};

TEST_F(ChoicesTest, TheOthersWaitForTheFirstAndShareItsPrompt) {
  Start(SmallConfig());
  AddChoices(4, Prompt(100));
  Step();
  EXPECT_EQ(scheduler->stats().running, 1);
  Step();
  EXPECT_EQ(outputs[1], 1);
  Step();
  EXPECT_EQ(scheduler->stats().running, 4);
  for (SeqKey key = 2; key <= 4; ++key) EXPECT_EQ(cached[key], 96);
  EXPECT_EQ(scheduler->stats().blocks_used, 6 + 4);
  Drain();
  for (SeqKey key = 1; key <= 4; ++key) EXPECT_EQ(outputs[key], 5);
  ExpectIdle();
}

TEST_F(ChoicesTest, TheyHoldUpNobodyElse) {
  Start(SmallConfig());
  AddChoices(3, Prompt(100));
  Add(50, Prompt(4, 0), 2);
  Step();
  EXPECT_EQ(cached.count(50), 0u) << "the long prompt takes the whole step";
  Step();
  EXPECT_EQ(cached.count(50), 1u);
}

TEST_F(ChoicesTest, TheNextOneLeadsWhenTheFirstIsAborted) {
  Start(SmallConfig());
  AddChoices(3, Prompt(100));
  Step();
  scheduler->Abort(1);
  EXPECT_EQ(scheduler->CheckInvariants(), "");
  Drain();
  EXPECT_EQ(outputs[2], 5);
  EXPECT_EQ(outputs[3], 5);
  EXPECT_EQ(cached[3], 96);
}

TEST_F(ChoicesTest, NobodyWaitsWithoutACache) {
  SchedulerConfig config = SmallConfig();
  config.kv.enable_prefix_caching = false;
  Start(config);
  AddChoices(4, Prompt(16));
  Step();
  EXPECT_EQ(scheduler->stats().running, 4);
}

}  // namespace
}  // namespace vivace
