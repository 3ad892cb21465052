#include "load/validity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/testing/make_run.h"

namespace vivace::load {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Failed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeRun;

RunResult WithFailures(int completed, int failed) {
  RunResult run = MakeRun({.requests = completed});
  for (int i = 0; i < failed; ++i) {
    run.records.push_back(Failed(completed + i, 1000, Outcome::kRefused, "503: full"));
  }
  run.figures = ComputeFigures(run.records, {});
  return run;
}

TEST(Validity, OnePercentOfFailuresIsTheMost) {
  EXPECT_THAT(InvalidBecause(WithFailures(99, 1)), IsEmpty());
  EXPECT_THAT(Warnings(WithFailures(99, 1)), Contains(HasSubstr("1 of 100 requests failed")));
  EXPECT_THAT(InvalidBecause(WithFailures(98, 2)),
              ElementsAre("2 of 100 requests failed (over 1 %); most often: 503: full"));
}

TEST(Validity, NothingCompleted) {
  EXPECT_THAT(InvalidBecause(WithFailures(0, 3)),
              ElementsAre("no request completed; most often: 503: full"));
  EXPECT_THAT(InvalidBecause(RunResult{}), ElementsAre("no request was run"));
}

TEST(Validity, AClientThatWasTheBottleneck) {
  RunResult run = MakeRun({.requests = 200});
  EXPECT_THAT(InvalidBecause(run), IsEmpty());
  run.client.bottleneck = true;
  run.client.why = "it used 99 % of a core";
  EXPECT_THAT(InvalidBecause(run),
              ElementsAre("the client slowed the run down: it used 99 % of a core"));
}

TEST(Warnings, SayWhatAReaderWouldTripOver) {
  EXPECT_THAT(Warnings(MakeRun({.requests = 200})), IsEmpty());
  EXPECT_THAT(Warnings(MakeRun({.requests = 20})),
              Contains(HasSubstr("a p99 is about the slowest")));
  RunResult run = MakeRun({.requests = 200});
  run.partial = true;
  run.note = "interrupted";
  run.figures.wrong_lengths = 100;
  run.figures.tokens_per_chunk = 2;
  run.records[0].counted = false;
  const auto warnings = Warnings(run);
  EXPECT_THAT(warnings, Contains(HasSubstr("ended early (interrupted)")));
  EXPECT_THAT(warnings, Contains(HasSubstr("100 of 200 answers are not of the length")));
  EXPECT_THAT(warnings, Contains(HasSubstr("2.00 tokens came in a chunk")));
  EXPECT_THAT(warnings, Contains(HasSubstr("no usage for 1 requests")));
}

TEST(Warnings, WhatWasInterruptedIsApartFromWhatWasNeverSent) {
  RunResult run = MakeRun({.requests = 4});
  run.records.push_back(Failed(4, 1000, Outcome::kNotRun, "interrupted"));
  run.records.push_back(Failed(5, 1000, Outcome::kNotRun, "interrupted"));
  run.records.back().sent_ns = run.records.back().ended_ns = 0;
  run.figures = ComputeFigures(run.records, {});
  run.partial = true;
  run.note = "interrupted";
  EXPECT_THAT(Warnings(run), Contains(HasSubstr("1 of 6 requests were never sent")));
  EXPECT_THAT(Warnings(run),
              Contains(HasSubstr("1 of 6 requests were sent and interrupted before they ended")));
}

TEST(Warnings, PromptsThatTheServerKnewFromBefore) {
  RunResult run = MakeRun({.requests = 200});
  run.shared_prompts = 0.3;
  const auto cached = [&](double share) {
    run.figures.cached_tokens = static_cast<int64_t>(share * run.figures.input_tokens);
    return Warnings(run);
  };
  EXPECT_THAT(cached(0.45), IsEmpty());  // what they share, and some
  EXPECT_THAT(cached(0.9), ElementsAre(HasSubstr("90 % of the prompts' tokens came from")));
  EXPECT_THAT(cached(0.9), ElementsAre(HasSubstr("--seed")));
  run.shared_prompts = 1;  // of a report that does not say
  EXPECT_THAT(cached(0.9), IsEmpty());
}

TEST(Warnings, RequestsSentLateInAnOpenLoop) {
  RunResult run = MakeRun({.requests = 200});
  run.max_concurrency = 0;
  for (RequestRecord& r : run.records) r.sent_ns += testing::Ms(20);
  run.figures = ComputeFigures(run.records, {});
  EXPECT_THAT(Warnings(run), Contains(HasSubstr("sent late (p99 20.0 ms)")));
}

}  // namespace
}  // namespace vivace::load
