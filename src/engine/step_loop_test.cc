#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <semaphore>
#include <thread>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/testing/fake_constraint.h"
#include "engine/testing/fake_executor.h"

namespace vivace {
namespace {

using testing::FakeConstraint;
using testing::FakeExecutor;
using testing::FakeRules;

constexpr ExecutorLimits kLimits = {.vocab = 1000,
                                    .max_sequences = 8,
                                    .max_batched_tokens = 32,
                                    .max_model_len = 200,
                                    .block_size = 16,
                                    .num_blocks = 40};

// An engine over a FakeExecutor and a consumer that reads everything.
class EngineTest : public ::testing::Test {
 protected:
  void StartEngine(const ExecutorLimits& limits = kLimits, EngineConfig config = {},
                   std::vector<TokenId> eos = {}) {
    auto executor = std::make_unique<FakeExecutor>(limits);
    executor_ = executor.get();
    auto engine = Engine::Start(config, std::move(executor), std::move(eos));
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
    engine_->OnReady([this] { news_.release(); });
  }

  static GenerationRequest Make(std::vector<TokenId> prompt, int32_t max_tokens, int32_t n = 1) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.sampling.max_tokens = max_tokens;
    request.num_choices = n;
    return request;
  }

  struct Answer {
    std::vector<TokenId> tokens;
    FinishReason finish = FinishReason::kNone;
  };

  static void Drain(ActiveRequest* request, std::vector<Answer>* answers) {
    answers->resize(request->choices.size());
    for (size_t i = 0; i < answers->size(); ++i) {
      const auto news = request->choices[i]->Read();
      (*answers)[i].tokens.insert((*answers)[i].tokens.end(), news.begin(), news.end());
      (*answers)[i].finish = request->choices[i]->finish_reason();
    }
  }

  // Reads until every choice ended.
  std::vector<Answer> Collect(const RequestPtr& request) {
    std::vector<Answer> answers;
    const auto open = [&] {
      Drain(request.get(), &answers);
      return std::any_of(answers.begin(), answers.end(),
                         [](const Answer& a) { return a.finish == FinishReason::kNone; });
    };
    std::vector<RequestPtr> ready;
    while (open()) {
      EXPECT_TRUE(news_.try_acquire_for(std::chrono::seconds(20))) << "no news";
      engine_->TakeReady(&ready);
      ready.clear();
    }
    return answers;
  }

  static std::vector<TokenId> Expected(std::vector<TokenId> tokens, size_t count) {
    const size_t prompt = tokens.size();
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(FakeExecutor::NextToken(tokens, kLimits.vocab));
    }
    return {tokens.begin() + static_cast<ptrdiff_t>(prompt), tokens.end()};
  }

  void WaitIdle() {
    for (int i = 0; i < 5000; ++i) {
      const EngineStats stats = engine_->stats();
      if (stats.running == 0 && stats.waiting == 0 && stats.blocks_used == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL() << "engine did not get idle";
  }

  FakeExecutor* executor_ = nullptr;
  std::counting_semaphore<> news_{0};
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, AnswersWithTheExecutorsTokens) {
  StartEngine();
  std::vector<TokenId> prompt(70);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i * 7);
  const auto request = engine_->Submit(Make(prompt, 25), nullptr);
  ASSERT_TRUE(request);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, Expected(prompt, 25));
  EXPECT_EQ(answers[0].finish, FinishReason::kLength);
  EXPECT_EQ(engine_->stats().generation_tokens, 25);
  WaitIdle();
}

TEST_F(EngineTest, ManyAtOnceGetTheirOwnTokensThroughPreemption) {
  ExecutorLimits limits = kLimits;
  limits.num_blocks = 14;
  StartEngine(limits);
  std::vector<RequestPtr> requests;
  for (TokenId i = 0; i < 20; ++i) {
    auto request = engine_->Submit(
        Make(std::vector<TokenId>(static_cast<size_t>(5 + i * 3), i), 40, 1 + i % 3), nullptr);
    ASSERT_TRUE(request);
    requests.push_back(*request);
  }
  for (const RequestPtr& request : requests) {
    for (const Answer& answer : Collect(request)) {
      EXPECT_EQ(answer.tokens, Expected(request->request.prompt, 40));
    }
  }
  EXPECT_GT(engine_->stats().preemptions, 0);
  WaitIdle();
}

TEST_F(EngineTest, StopsAtEosAndSaysWhich) {
  StartEngine(kLimits, {}, {7});
  executor_->next = [](std::span<const TokenId> tokens) {
    return static_cast<TokenId>(tokens.size());
  };
  const auto request = engine_->Submit(Make({1, 2, 3}, 50), nullptr);
  ASSERT_TRUE(request);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, (std::vector<TokenId>{3, 4, 5, 6, 7}));
  EXPECT_EQ(answers[0].finish, FinishReason::kStop);
  EXPECT_EQ((*request)->choices[0]->stop_token(), 7);
}

TEST_F(EngineTest, LogprobsOfPromptAndOutput) {
  StartEngine();
  GenerationRequest wanted = Make({10, 20, 30}, 2);
  wanted.sampling.logprobs = 2;
  wanted.sampling.prompt_logprobs = 1;
  const auto request = engine_->Submit(std::move(wanted), nullptr);
  ASSERT_TRUE(request);
  const auto answers = Collect(*request);
  const TokenStream& stream = *(*request)->choices[0];
  for (int32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(stream.chosen(i).token, answers[0].tokens[static_cast<size_t>(i)]);
    EXPECT_EQ(stream.top(i).size(), 2u);
  }
  const PromptLogprobs& prompt = (*request)->prompt_logprobs;
  EXPECT_EQ(prompt.chosen[1].token, 20);
  EXPECT_EQ(prompt.chosen[2].token, 30);
  EXPECT_EQ(prompt.num_top[2], 1);
  EXPECT_EQ(prompt.rank[2], 1);
}

TEST_F(EngineTest, PromptOnly) {
  StartEngine();
  GenerationRequest wanted = Make({10, 20, 30}, 0);
  wanted.sampling.prompt_logprobs = 0;
  const auto request = engine_->Submit(std::move(wanted), nullptr);
  ASSERT_TRUE(request);
  const auto answers = Collect(*request);
  EXPECT_TRUE(answers[0].tokens.empty());
  EXPECT_EQ(answers[0].finish, FinishReason::kLength);
  EXPECT_EQ((*request)->prompt_logprobs.chosen[2].token, 30);
}

TEST_F(EngineTest, AbortInFlightEndsOneChoice) {
  StartEngine();
  executor_->Hold();
  const auto request = engine_->Submit(Make({1, 2, 3}, 100, 2), nullptr);
  ASSERT_TRUE(request);
  executor_->WaitInFlight();
  engine_->Abort(*request, 1);
  executor_->Release();
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].finish, FinishReason::kLength);
  EXPECT_EQ(answers[0].tokens, Expected({1, 2, 3}, 100));
  EXPECT_EQ(answers[1].finish, FinishReason::kAborted);
  engine_->Abort(*request);  // a no-op by now
  WaitIdle();
}

TEST_F(EngineTest, AbortWhileQueued) {
  StartEngine();
  executor_->Hold();
  const auto first = engine_->Submit(Make({1}, 10), nullptr);
  executor_->WaitInFlight();
  const auto second = engine_->Submit(Make({2}, 10), nullptr);
  ASSERT_TRUE(second);
  engine_->Abort(*second);
  executor_->Release();
  EXPECT_EQ(Collect(*second)[0].finish, FinishReason::kAborted);
  EXPECT_EQ(Collect(*first)[0].finish, FinishReason::kLength);
  WaitIdle();
}

TEST_F(EngineTest, ADeadlineEndsWhatRunsAndWhatWaits) {
  ExecutorLimits limits = kLimits;
  limits.max_sequences = 1;
  StartEngine(limits);
  executor_->per_token = std::chrono::milliseconds(1);
  GenerationRequest running = Make({1, 2, 3}, 190, 2);
  running.deadline_ns = SteadyNanos() + 40'000'000;
  GenerationRequest waiting = Make({4}, 5);
  waiting.deadline_ns = running.deadline_ns;
  const auto first = engine_->Submit(std::move(running), nullptr);
  const auto second = engine_->Submit(std::move(waiting), nullptr);
  const auto unhurried = engine_->Submit(Make({5}, 3), nullptr);
  for (const auto& request : {first, second}) {
    for (const Answer& answer : Collect(*request)) {
      EXPECT_EQ(answer.finish, FinishReason::kDeadline);
      EXPECT_LT(answer.tokens.size(), 190u);
    }
  }
  EXPECT_EQ(Collect(*unhurried)[0].finish, FinishReason::kLength);
  WaitIdle();
}

TEST_F(EngineTest, AWaitThatIsTooLongEndsOnlyWhatWaits) {
  ExecutorLimits limits = kLimits;
  limits.max_sequences = 1;
  StartEngine(limits);
  executor_->per_token = std::chrono::milliseconds(1);
  GenerationRequest running = Make({1, 2, 3}, 100);
  running.max_queue_ns = 20'000'000'000;
  const auto first = engine_->Submit(std::move(running), nullptr);
  GenerationRequest waiting = Make({4}, 5);
  waiting.max_queue_ns = 20'000'000;
  const auto second = engine_->Submit(std::move(waiting), nullptr);
  EXPECT_EQ(Collect(*second)[0].finish, FinishReason::kQueueTimeout);
  EXPECT_EQ(Collect(*first)[0].finish, FinishReason::kLength);
  WaitIdle();
}

TEST_F(EngineTest, WhatIsLateAlreadyIsNotComputed) {
  StartEngine();
  GenerationRequest late = Make({1, 2, 3}, 10);
  late.deadline_ns = 1;
  EXPECT_EQ(Collect(*engine_->Submit(std::move(late), nullptr))[0].finish, FinishReason::kDeadline);
  WaitIdle();
  EXPECT_EQ(engine_->stats().step, 0);
}

TEST_F(EngineTest, SaysWhatWaitsAndHowFastItLeaves) {
  ExecutorLimits limits = kLimits;
  limits.max_sequences = 1;
  StartEngine(limits);
  EXPECT_EQ(engine_->stats().prompt_tokens_per_s, 0);
  executor_->per_token = std::chrono::milliseconds(5);
  const auto few = engine_->Submit(Make(std::vector<TokenId>(3, 1), 1), nullptr);
  Collect(*few);
  WaitIdle();
  EXPECT_EQ(engine_->stats().prompt_tokens_per_s, 0);
  const auto first = engine_->Submit(Make(std::vector<TokenId>(40, 1), 1), nullptr);
  Collect(*first);
  WaitIdle();
  // A token takes five milliseconds at least.
  EXPECT_GT(engine_->stats().prompt_tokens_per_s, 0);
  EXPECT_LE(engine_->stats().prompt_tokens_per_s, 200);
  const auto running = engine_->Submit(Make({1}, 190), nullptr);
  const auto waiting = engine_->Submit(Make(std::vector<TokenId>(10, 2), 2), nullptr);
  for (int i = 0; i < 500 && engine_->stats().queued_tokens != 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(engine_->stats().queued_requests, 1);
  EXPECT_EQ(engine_->stats().queued_tokens, 10);
  // It waits for the place, not for prompts: the queue becomes slow, they do not.
  for (int i = 0; i < 2'000 && engine_->stats().generation_tokens < 60; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  engine_->Abort(*running);
  Collect(*waiting);
  WaitIdle();
  const EngineStats stats = engine_->stats();
  EXPECT_GT(stats.queue_requests_per_s, 0);
  EXPECT_LT(stats.queue_tokens_per_s, 0.9 * stats.prompt_tokens_per_s);
  EXPECT_EQ(engine_->stats().queued_tokens, 0);
}

// Preempted, chunked, found in the cache: the mean is over every position, and nothing is sampled.
TEST_F(EngineTest, PoolsPrompts) {
  ExecutorLimits limits = kLimits;
  limits.hidden = 4;
  limits.num_blocks = 20;
  StartEngine(limits);
  std::vector<RequestPtr> requests;
  for (int32_t i = 0; i < 24; ++i) {
    GenerationRequest wanted = Make(std::vector<TokenId>(static_cast<size_t>(3 + 7 * i), i), 30, 3);
    if (i % 3 != 0) wanted.pooling = i % 3 == 1 ? Pooling::kMean : Pooling::kLast;
    auto request = engine_->Submit(std::move(wanted), nullptr);
    ASSERT_TRUE(request) << request.error().message;
    requests.push_back(*request);
  }
  for (int32_t i = 0; i < 24; ++i) {
    const RequestPtr& request = requests[static_cast<size_t>(i)];
    const auto answers = Collect(request);
    if (i % 3 == 0) {
      EXPECT_TRUE(request->pooled.empty());
      continue;
    }
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(answers[0].tokens.empty());
    EXPECT_EQ(answers[0].finish, FinishReason::kLength);
    const auto last = static_cast<float>(2 + 7 * i);
    EXPECT_EQ(request->pooled,
              (std::vector<float>{static_cast<float>(i), i % 3 == 1 ? last / 2 : last, 0, 0}));
  }
  WaitIdle();
}

TEST_F(EngineTest, NoPoolingWithoutAnExecutorForIt) {
  StartEngine();
  GenerationRequest wanted = Make({1}, 1);
  wanted.pooling = Pooling::kMean;
  EXPECT_EQ(engine_->Submit(std::move(wanted), nullptr).error().reason, "no_embeddings");
}

// Only where it is exact: a mean is over all positions.
TEST_F(EngineTest, APooledPromptFindsThePrefixOfTheLastOnly) {
  ExecutorLimits limits = kLimits;
  limits.hidden = 2;
  StartEngine(limits);
  for (const auto& [pooling, cached] :
       {std::pair{Pooling::kMean, 0}, {Pooling::kMean, 0}, {Pooling::kLast, 32}}) {
    GenerationRequest wanted = Make(std::vector<TokenId>(40, 7), 0);
    wanted.pooling = pooling;
    const auto request = engine_->Submit(std::move(wanted), nullptr);
    Collect(*request);
    EXPECT_EQ((*request)->cached_tokens.load(), cached);
    EXPECT_EQ((*request)->pooled[1], pooling == Pooling::kMean ? 19.5f : 39.0f);
  }
}

class ConstraintTest : public EngineTest {
 protected:
  // A choice for each of `rules`; what the constraints were told is in constraints_.
  GenerationRequest Constrained(std::vector<TokenId> prompt, int32_t max_tokens,
                                const FakeRules& rules, int32_t n = 1) {
    GenerationRequest request = Make(std::move(prompt), max_tokens, n);
    for (int32_t i = 0; i < n; ++i) {
      auto constraint = std::make_unique<FakeConstraint>(rules);
      constraints_.push_back(constraint.get());
      request.constraints.push_back(std::move(constraint));
    }
    return request;
  }

  // What comes of it alone: forced tokens where the rules have some, else the first allowed token
  // from the executor's on.
  static std::vector<TokenId> Expected(std::vector<TokenId> tokens, size_t count,
                                       const FakeRules& rules, bool forces = true) {
    const size_t prompt = tokens.size();
    const auto outputs = [&] { return tokens.size() - prompt; };
    while (outputs() < count) {
      const int32_t forced = forces ? rules.ForcedBehind(outputs()) : 0;
      // The first step samples one at least.
      const size_t most = outputs() == 0 ? count - 1 : count;
      const size_t behind = outputs();
      while (outputs() < std::min(behind + static_cast<size_t>(forced), most)) {
        tokens.push_back(rules.ForcedAt(outputs()));
      }
      if (outputs() == count) break;
      TokenId next = FakeExecutor::NextToken(tokens, kLimits.vocab);
      while (!FakeRules::Allows(outputs(), next)) next = (next + 1) % kLimits.vocab;
      tokens.push_back(next);
    }
    return {tokens.begin() + static_cast<ptrdiff_t>(prompt), tokens.end()};
  }

  std::vector<FakeConstraint*> constraints_;
};

TEST_F(ConstraintTest, ChoosesWhatIsAllowedAndAcceptsItOnce) {
  StartEngine();
  const FakeRules rules{.vocab = kLimits.vocab};
  const auto request = engine_->Submit(Constrained({1, 2, 3}, 30, rules), nullptr);
  ASSERT_TRUE(request);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, Expected({1, 2, 3}, 30, rules));
  EXPECT_EQ(answers[0].finish, FinishReason::kLength);
  EXPECT_EQ(constraints_[0]->output(), answers[0].tokens);
  EXPECT_EQ(constraints_[0]->last_remaining(), 1);
  EXPECT_EQ(engine_->stats().forced_tokens, 0);
  WaitIdle();
}

TEST_F(ConstraintTest, ItsEndIsAStopWithoutAStopToken) {
  StartEngine();
  const FakeRules rules{.vocab = kLimits.vocab, .length = 12};
  const auto request = engine_->Submit(Constrained({1, 2, 3}, 30, rules), nullptr);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, Expected({1, 2, 3}, 12, rules));
  EXPECT_EQ(answers[0].finish, FinishReason::kStop);
  EXPECT_EQ((*request)->choices[0]->stop_token(), -1);
}

TEST_F(ConstraintTest, ForcedTokensAreNotSampled) {
  StartEngine();
  const FakeRules rules{.vocab = kLimits.vocab, .forced_every = 3, .num_forced = 5};
  const auto request = engine_->Submit(Constrained({1, 2, 3}, 60, rules), nullptr);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, Expected({1, 2, 3}, 60, rules));
  EXPECT_EQ(constraints_[0]->output(), answers[0].tokens);
  WaitIdle();
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.generation_tokens, 60);
  EXPECT_GT(stats.forced_tokens, 30);
  EXPECT_EQ(stats.step, 60 - stats.forced_tokens);
}

// All that there is to say is forced: no step is needed.
TEST_F(ConstraintTest, WhatIsForcedToItsEndIsNotComputed) {
  StartEngine();
  const FakeRules rules{.vocab = kLimits.vocab, .forced_every = 100, .num_forced = 4, .length = 4};
  const auto request = engine_->Submit(Constrained({1, 2, 3}, 60, rules), nullptr);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, (std::vector<TokenId>{rules.ForcedAt(0), rules.ForcedAt(1),
                                                     rules.ForcedAt(2), rules.ForcedAt(3)}));
  EXPECT_EQ(answers[0].finish, FinishReason::kStop);
  WaitIdle();
  EXPECT_EQ(engine_->stats().step, 0);
  EXPECT_GT((*request)->times.finished_ns.load(), 0);
}

// Forced tokens have no log-probabilities, so these turn forcing off.
TEST_F(ConstraintTest, LogprobsTurnForcingOff) {
  StartEngine();
  const FakeRules rules{.vocab = kLimits.vocab, .forced_every = 3, .num_forced = 5};
  GenerationRequest wanted = Constrained({1, 2, 3}, 20, rules);
  wanted.sampling.logprobs = 0;
  const auto request = engine_->Submit(std::move(wanted), nullptr);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].tokens, Expected({1, 2, 3}, 20, rules, false));
  EXPECT_EQ((*request)->choices[0]->chosen(19).token, answers[0].tokens[19]);
}

TEST_F(ConstraintTest, AStopIdAmongForcedTokensStops) {
  const FakeRules rules{.vocab = kLimits.vocab, .forced_every = 3, .num_forced = 5};
  StartEngine(kLimits, {}, {rules.ForcedAt(6)});
  const auto request = engine_->Submit(Constrained({1, 2, 3}, 60, rules), nullptr);
  const auto answers = Collect(*request);
  EXPECT_EQ(answers[0].finish, FinishReason::kStop);
  EXPECT_EQ(answers[0].tokens.back(), rules.ForcedAt(6));
  EXPECT_EQ((*request)->choices[0]->stop_token(), rules.ForcedAt(6));
}

TEST_F(ConstraintTest, OneThatRefusesWhatItAllowedEndsInAnError) {
  StartEngine();
  for (const int32_t forced_every : {0, 5}) {
    const FakeRules rules{.vocab = kLimits.vocab, .forced_every = forced_every, .num_forced = 2};
    GenerationRequest wanted = Constrained({1, 2, 3}, 20, rules);
    constraints_.back()->refuses = true;
    const auto request = engine_->Submit(std::move(wanted), nullptr);
    const auto answers = Collect(*request);
    EXPECT_EQ(answers[0].finish, FinishReason::kError);
    EXPECT_TRUE(answers[0].tokens.empty());
  }
  WaitIdle();
}

// Preempted, recomputed, chunked, beside others, several choices: the answer it has alone, and
// nothing accepted twice.
TEST_F(ConstraintTest, TheSameInAnyCompany) {
  for (const std::vector<int32_t>& windows : {std::vector<int32_t>{0}, {0, 24}}) {
    ExecutorLimits limits = kLimits;
    limits.num_blocks = windows.size() == 1 ? 14 : 24;
    limits.kv_windows = windows.size() == 1 ? KvWindows{0} : KvWindows{0, 24};
    constraints_.clear();
    StartEngine(limits);
    std::vector<RequestPtr> requests;
    std::vector<FakeRules> rules;
    for (TokenId i = 0; i < 20; ++i) {
      rules.push_back({.vocab = kLimits.vocab,
                       .forced_every = i % 4,
                       .num_forced = 1 + i,
                       .length = i % 5 == 0 ? 33 : 1000});
      auto request =
          engine_->Submit(Constrained(std::vector<TokenId>(static_cast<size_t>(5 + i * 3), i), 40,
                                      rules.back(), 1 + i % 3),
                          nullptr);
      ASSERT_TRUE(request);
      requests.push_back(*request);
    }
    size_t constraint = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto count = static_cast<size_t>(std::min(40, rules[i].length));
      for (const Answer& answer : Collect(requests[i])) {
        EXPECT_EQ(answer.tokens, Expected(requests[i]->request.prompt, count, rules[i]))
            << "request " << i;
        EXPECT_EQ(constraints_[constraint++]->output(), answer.tokens);
      }
    }
    EXPECT_GT(engine_->stats().preemptions, 0);
    WaitIdle();
  }
}

TEST_F(EngineTest, NonFiniteLogitsEndOnlyThatRequest) {
  StartEngine();
  executor_->non_finite = true;
  const auto bad = engine_->Submit(Make({1}, 10), nullptr);
  EXPECT_EQ(Collect(*bad)[0].finish, FinishReason::kError);
  executor_->non_finite = false;
  const auto good = engine_->Submit(Make({1}, 10), nullptr);
  EXPECT_EQ(Collect(*good)[0].tokens, Expected({1}, 10));
}

TEST_F(EngineTest, RefusesWhatCanNeverFit) {
  StartEngine();
  const auto longer = engine_->Submit(Make(std::vector<TokenId>(200, 1), 1), nullptr);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().reason, "context_length_exceeded");
  EXPECT_NE(longer.error().message.find("200"), std::string::npos);
  const auto cut = engine_->Submit(Make(std::vector<TokenId>(199, 1), 50), nullptr);
  ASSERT_TRUE(cut);
  EXPECT_EQ(Collect(*cut)[0].tokens.size(), 1u);
  EXPECT_FALSE(engine_->Submit(Make({}, 1), nullptr));
  EXPECT_FALSE(engine_->Submit(Make({1000}, 1), nullptr));
  EXPECT_FALSE(engine_->Submit(Make({-1}, 1), nullptr));
}

TEST_F(EngineTest, QueueIsBounded) {
  EngineConfig config;
  config.max_queued_requests = 3;
  StartEngine(kLimits, config);
  executor_->Hold();
  std::vector<RequestPtr> taken = {*engine_->Submit(Make({1}, 2), nullptr)};
  executor_->WaitInFlight();
  for (int i = 0; i < 3; ++i) taken.push_back(*engine_->Submit(Make({1}, 2), nullptr));
  const auto refused = engine_->Submit(Make({1}, 2), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  executor_->Release();
  for (const RequestPtr& request : taken) Collect(request);
  EXPECT_TRUE(engine_->Submit(Make({1}, 2), nullptr));
}

TEST_F(EngineTest, QueuedTokensAreBoundedButForOnePromptAlone) {
  EngineConfig config;
  config.max_queued_tokens = 5;
  StartEngine(kLimits, config);
  executor_->Hold();
  const auto prompt = [this](size_t tokens) { return Make(std::vector<TokenId>(tokens, 1), 2); };
  std::vector<RequestPtr> taken = {*engine_->Submit(prompt(9), nullptr)};
  executor_->WaitInFlight();
  taken.push_back(*engine_->Submit(prompt(8), nullptr));  // nobody waits
  EXPECT_FALSE(engine_->Submit(prompt(1), nullptr));
  GenerationRequest second = prompt(9);
  second.follows = true;
  taken.push_back(*engine_->Submit(std::move(second), nullptr));
  executor_->Release();
  for (const RequestPtr& request : taken) Collect(request);
  WaitIdle();
  EXPECT_TRUE(engine_->Submit(prompt(9), nullptr));
}

TEST_F(EngineTest, StopEndsEverythingWithAnError) {
  StartEngine();
  executor_->Hold();
  std::vector<RequestPtr> requests;
  for (TokenId i = 0; i < 12; ++i) requests.push_back(*engine_->Submit(Make({i}, 150), nullptr));
  executor_->WaitInFlight();
  std::thread stopper([this] { engine_->Stop(); });
  // Only once the stop has begun may the step end: then nothing can have finished by itself.
  const auto stopping = [&] {
    const auto late = engine_->Submit(Make({1}, 1), nullptr);
    return !late && late.error().code == ErrorCode::kUnavailable;
  };
  while (!stopping()) std::this_thread::yield();
  executor_->Release();
  stopper.join();
  for (const RequestPtr& request : requests) {
    EXPECT_EQ(Collect(request)[0].finish, FinishReason::kError);
  }
  EXPECT_FALSE(engine_->Submit(Make({1}, 1), nullptr));
  EXPECT_EQ(engine_->stats().blocks_used, 0);
}

TEST_F(EngineTest, DrainRefusesNewAndFinishesOld) {
  StartEngine();
  const auto request = engine_->Submit(Make({1, 2}, 30), nullptr);
  engine_->BeginDrain();
  const auto late = engine_->Submit(Make({1}, 1), nullptr);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(Collect(*request)[0].tokens, Expected({1, 2}, 30));
}

TEST_F(EngineTest, UnseededRequestsDifferAndSeedsAreKept) {
  StartEngine();
  const auto a = engine_->Submit(Make({1}, 1), nullptr);
  const auto b = engine_->Submit(Make({1}, 1), nullptr);
  EXPECT_NE((*a)->request.sampling.seed, (*b)->request.sampling.seed);
  GenerationRequest seeded = Make({1}, 1);
  seeded.sampling.seeded = true;
  seeded.sampling.seed = 42;
  EXPECT_EQ((*engine_->Submit(std::move(seeded), nullptr))->request.sampling.seed, 42u);
}

// Many threads submit, abort and reset while one consumer reads; nothing is lost, nothing is left.
TEST_F(EngineTest, ConcurrentSubmitAndAbort) {
  EngineConfig config;
  config.max_queued_requests = 10'000;
  StartEngine(kLimits, config);
  std::atomic<int> ended{0};
  std::atomic<bool> done{false};
  constexpr int kThreads = 4, kEach = 60;
  std::thread consumer([&] {
    std::vector<RequestPtr> ready;
    while (!done) {
      news_.try_acquire_for(std::chrono::milliseconds(5));
      engine_->TakeReady(&ready);
      for (const RequestPtr& request : ready) {
        std::vector<Answer> answers;
        Drain(request.get(), &answers);
        for (const Answer& answer : answers) {
          if (answer.finish == FinishReason::kNone) continue;
          if (!std::exchange(request->consumer, this)) ended.fetch_add(1);
        }
      }
      ready.clear();
    }
  });
  std::vector<std::thread> submitters;
  for (int t = 0; t < kThreads; ++t) {
    submitters.emplace_back([&, t] {
      std::mt19937 rng(static_cast<uint32_t>(t));
      for (int i = 0; i < kEach; ++i) {
        const auto length = static_cast<size_t>(1 + rng() % 90);
        auto request = engine_->Submit(
            Make(std::vector<TokenId>(length, t), static_cast<int32_t>(1 + rng() % 30)), nullptr);
        ASSERT_TRUE(request) << request.error().message;
        if (rng() % 3 == 0) engine_->Abort(*request);
        if (rng() % 10 == 0) engine_->ResetPrefixCache();
      }
    });
  }
  for (std::thread& thread : submitters) thread.join();
  WaitIdle();
  for (int i = 0; i < 5000 && ended < kThreads * kEach; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  done = true;
  consumer.join();
  EXPECT_EQ(ended, kThreads * kEach);
}

// A prompt of three chunks, and one that waits for its place.
TEST_F(EngineTest, ATimelineTellsWhatHappened) {
  ExecutorLimits limits = kLimits;
  limits.max_sequences = 1;
  StartEngine(limits);
  executor_->Hold();
  const auto first = engine_->Submit(Make(std::vector<TokenId>(70, 1), 5), nullptr);
  executor_->WaitInFlight();
  const auto second = engine_->Submit(Make({2, 3}, 2), nullptr);
  executor_->Release();
  Collect(*first);
  Collect(*second);
  WaitIdle();
  const auto kinds = [](const RequestPtr& request) {
    std::vector<TimelineKind> kinds;
    for (const TimelineEvent& event : request->timeline.events()) kinds.push_back(event.kind);
    return kinds;
  };
  using enum TimelineKind;
  ASSERT_EQ(kinds(*first),
            (std::vector{kStarted, kPrompt, kPrompt, kPrompt, kFirstToken, kFinished}));
  const auto events = (*first)->timeline.events();
  EXPECT_EQ(events[0].cause, WaitCause::kNone);
  int32_t position = 0;
  for (size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(events[i].position, position);
    EXPECT_EQ(events[i].tokens, i == 3 ? 6 : 32);
    EXPECT_EQ(events[i].step_prompts, 1);
    EXPECT_EQ(events[i].step_answers, 0);
    EXPECT_EQ(events[i].bound, StepBound::kPrompts);
    EXPECT_GE(events[i].at_ns, events[i - 1].at_ns);
    position += events[i].tokens;
  }
  const StepSums decodes = (*first)->timeline.decodes();
  EXPECT_EQ(decodes.steps, 4);  // the first token came with the prompt
  EXPECT_EQ(decodes.answers, 4);
  EXPECT_EQ(decodes.prompt_steps, 0);
  EXPECT_GT(decodes.ns, 0);
  ASSERT_EQ(kinds(*second), (std::vector{kStarted, kPrompt, kFirstToken, kFinished}));
  EXPECT_EQ((*second)->timeline.events()[0].cause, WaitCause::kSequences);
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.computed_tokens, 72 + 4 + 1);
}

TEST_F(EngineTest, CountsWhereTheTimeOfStepsGoes) {
  StartEngine();
  Collect(*engine_->Submit(Make({1, 2, 3}, 20), nullptr));
  WaitIdle();
  const EngineStats stats = engine_->stats();
  int64_t steps = 0;
  for (const int64_t count : stats.step_buckets) steps += count;
  EXPECT_EQ(stats.step, 20);
  EXPECT_EQ(steps, 20);
  EXPECT_GT(stats.step_ns, 0);
  EXPECT_EQ(stats.kernel_ns, 0) << "the fake executor measures nothing";
}

// Chunks of a prompt that arrives beside a stream, on average; each token takes a millisecond.
class MaxItlTest : public EngineTest {
 protected:
  double ChunkBesideAStream(double max_itl_ms) {
    EngineConfig config;
    config.max_itl_ms = max_itl_ms;
    StartEngine(kLimits, config);
    executor_->per_token = std::chrono::milliseconds(1);
    const auto stream = *engine_->Submit(Make({1}, 150), nullptr);
    while (stream->choices[0]->Read().empty()) std::this_thread::yield();
    Collect(*engine_->Submit(Make(std::vector<TokenId>(150, 5), 1), nullptr));
    engine_->Abort(stream);
    WaitIdle();
    const EngineStats stats = engine_->stats();
    EXPECT_GE(stats.mixed_ns, stats.mixed_prompt_tokens * 1'000'000);
    EXPECT_EQ(stats.mixed_predicted_ns > 0, max_itl_ms > 0);
    return static_cast<double>(stats.mixed_prompt_tokens) / static_cast<double>(stats.mixed_steps);
  }
};

TEST_F(MaxItlTest, OffTakesWholeSteps) { EXPECT_GT(ChunkBesideAStream(0), 24); }
TEST_F(MaxItlTest, AShortOneTakesTheLeastChunk) { EXPECT_LT(ChunkBesideAStream(10), 20); }
TEST_F(MaxItlTest, ALongOneLeavesRoom) { EXPECT_GT(ChunkBesideAStream(10'000), 24); }

TEST(EngineConfigTest, RefusesWithTheFlagsName) {
  EngineConfig config;
  config.block_size = 17;
  EXPECT_EQ(Validate(config).error().field, "block-size");
  config = {};
  config.max_num_seqs = 0;
  EXPECT_EQ(Validate(config).error().field, "max-num-seqs");
  for (const double bad : {-1.0, 60'000.5, std::numeric_limits<double>::quiet_NaN()}) {
    config = {};
    config.max_itl_ms = bad;
    EXPECT_EQ(Validate(config).error().field, "max-itl");
  }
  config = {};
  config.num_kv_blocks = 1;
  config.kv_cache_memory_bytes = 1;
  EXPECT_EQ(Validate(config).error().reason, "flag_conflict");
  EXPECT_TRUE(Validate(EngineConfig{}));
}

// A cached prefix has no recurrent state to go on from.
TEST_F(EngineTest, RecurrentModelsFindNoPrefixes) {
  for (const bool recurrent : {false, true}) {
    ExecutorLimits limits = kLimits;
    limits.recurrent = recurrent;
    StartEngine(limits);
    const std::vector<TokenId> prompt(48, 7);
    for (const int32_t want : {0, recurrent ? 0 : 32}) {
      const auto request = engine_->Submit(Make(prompt, 1), nullptr);
      ASSERT_TRUE(request.has_value());
      Collect(*request);
      EXPECT_EQ((*request)->cached_tokens.load(), want);
    }
  }
}

// With longrope, prompts beyond the trained length put other keys into the cache than shorter ones.
TEST_F(EngineTest, LongPromptsShareNothingWithShortOnes) {
  ExecutorLimits limits = kLimits;
  limits.long_prompt = 40;
  StartEngine(limits);
  std::vector<TokenId> prompt(48);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i);
  const auto cached = [&](size_t length) {
    const auto end = prompt.begin() + static_cast<std::ptrdiff_t>(length);
    const auto request = engine_->Submit(Make({prompt.begin(), end}, 1), nullptr);
    EXPECT_TRUE(request.has_value());
    Collect(*request);
    return (*request)->cached_tokens.load();
  };
  EXPECT_EQ(cached(48), 0);
  EXPECT_EQ(cached(40), 0) << "a short one finds nothing of the long one";
  EXPECT_EQ(cached(39), 32) << "but of its like";
  EXPECT_EQ(cached(41), 32) << "as the long ones do";
}

}  // namespace
}  // namespace vivace
