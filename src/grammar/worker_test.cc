#include "grammar/worker.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "grammar/grammar_testing.h"
#include "grammar/worker_wire.h"
#include "support/paths.h"

namespace vivace::grammar {
namespace {

const std::string kWorker = vivace::testing::BinaryDir() + "/src/grammar/grammar_worker";

using std::chrono::milliseconds;
using testing::JsonTokenizer;
using testing::kLogits;
using testing::Schema;
using testing::Spec;

std::shared_ptr<const Vocabulary> Tokens() {
  return Vocabulary::From(*JsonTokenizer(), kLogits, {testing::kEos});
}

GrammarCompilerConfig InWorker() {
  GrammarCompilerConfig config;
  config.worker = {kWorker};
  return config;
}

Lowered Text(const GrammarSpec& spec) { return *Lower(spec); }

// Takes xgrammar long: every count is written out.
GrammarSpec Hostile() {
  std::string text = "root ::= a\n";
  for (char rule = 'a'; rule < 'h'; ++rule) {
    text += std::string(1, rule) + " ::= (";
    for (int i = 0; i < 12; ++i) {
      text += std::string(1, static_cast<char>(rule + 1)) + " \"" + std::to_string(i) + "\" | ";
    }
    text += "\"x\"){7,90}\n";
  }
  return Spec(GrammarSpec::Kind::kEbnf, text + "h ::= [a-z]{1,90} [0-9]{2,80}\n");
}

TEST(GrammarWorker, CompilesAndLivesOn) {
  WorkerProcess worker({kWorker}, Tokens());
  EXPECT_EQ(worker.pid(), -1);
  const auto first = worker.Compile(Text(Schema(R"({"type":"integer"})")), milliseconds(5000));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_THAT(*first, ::testing::StartsWith("{"));
  const pid_t pid = worker.pid();
  EXPECT_GT(pid, 0);
  const auto bad = worker.Compile({Lowered::Kind::kEbnf, "root ::= nothing"}, milliseconds(5000));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().reason, "bad_grammar");
  ASSERT_TRUE(worker.Compile(Text(Schema("{}")), milliseconds(5000)));
  EXPECT_EQ(worker.pid(), pid);
}

TEST(GrammarWorker, IsStartedAgainWhenItDied) {
  WorkerProcess worker({kWorker}, Tokens());
  ASSERT_TRUE(worker.Compile(Text(Schema("{}")), milliseconds(5000)));
  const pid_t pid = worker.pid();
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  // Dying takes a moment; a compile that meets it fails, the next does not.
  const auto again = [&] { return worker.Compile(Text(Schema("{}")), milliseconds(5000)); };
  EXPECT_TRUE(again() || again());
  EXPECT_NE(worker.pid(), pid);
}

TEST(GrammarWorker, IsStoppedWhenItTakesTooLong) {
  WorkerProcess worker({kWorker}, Tokens());
  ASSERT_TRUE(worker.Compile(Text(Schema("{}")), milliseconds(5000)));
  const auto start = std::chrono::steady_clock::now();
  const auto late = worker.Compile(Text(Hostile()), milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "grammar_too_costly");
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("50 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(worker.pid(), -1);
  ASSERT_TRUE(worker.Compile(Text(Schema("{}")), milliseconds(5000)));
}

// Their outputs may end after any token, and each takes twice as long as the one before.
TEST(GrammarWorker, RefusesRepeatsOfWhatMayBeEmptyThatMultiply) {
  for (const std::string repeated : {R"("d"?)", R"([a-z]?)"}) {
    WorkerProcess worker({kWorker}, Tokens());
    const std::string text = "root ::= (((((" + repeated + "){1,1000}){1,1000}){1,1000}){1,1000})";
    const auto refused =
        worker.Compile(Text(Spec(GrammarSpec::Kind::kEbnf, text)), milliseconds(2000));
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().reason, "grammar_too_costly") << text;
  }
}

TEST(GrammarWorker, ThatCannotStartIsOurFault) {
  WorkerProcess worker({"/nonexistent"}, Tokens());
  const auto failed = worker.Compile(Text(Schema("{}")), milliseconds(1000));
  ASSERT_FALSE(failed);
  WorkerProcess deaf({"/bin/true"}, Tokens());
  EXPECT_FALSE(deaf.Compile(Text(Schema("{}")), milliseconds(1000)));
}

// A worker that ends with `status` when it is first started, and is a real one from then on; it
// leaves the file `mark`.
GrammarCompilerConfig EndsOnce(const std::string& mark, int status) {
  std::filesystem::remove(mark);
  const std::string script = "if [ -e '" + mark + "' ]; then exec " + kWorker + "; fi; : > '" +
                             mark + "'; exit " + std::to_string(status);
  GrammarCompilerConfig config;
  config.worker = {"/bin/sh", "-c", script};
  return config;
}

TEST(GrammarWorker, WhatFailedForLackOfResourcesIsTriedAgain) {
  for (const int status : {wire::kOutOfMemory, 1}) {
    const std::string mark = ::testing::TempDir() + "/vivace_worker_ends_once";
    const auto compiler = NewGrammarCompiler(JsonTokenizer(), kLogits, EndsOnce(mark, status));
    const GrammarSpec spec = Schema(R"({"type":"integer"})");
    const auto failed = compiler->Compile(spec);
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().reason, ::testing::AnyOf("grammar_too_costly", "grammar_worker"));
    EXPECT_FALSE(failed.error().message.empty());
    const auto again = compiler->Compile(spec);
    EXPECT_TRUE(again) << again.error().message;
    std::filesystem::remove(mark);
  }
}

TEST(GrammarWorker, IsStartedBeforeAGrammarComes) {
  const std::string mark = ::testing::TempDir() + "/vivace_worker_prepared";
  const auto compiler = NewGrammarCompiler(JsonTokenizer(), kLogits, EndsOnce(mark, 1));
  EXPECT_FALSE(std::filesystem::exists(mark));
  compiler->Prepare();
  for (int i = 0; i < 1000 && !std::filesystem::exists(mark); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(std::filesystem::exists(mark));
  const auto compiled = compiler->Compile(Schema(R"({"type":"integer"})"));
  // The one that Prepare started has ended meanwhile, or ends under this one.
  EXPECT_TRUE(compiled || compiler->Compile(Schema(R"({"type":"integer"})")));
  std::filesystem::remove(mark);
}

TEST(GrammarWorker, GivesWhatThisProcessWouldHave) {
  const auto outside = NewGrammarCompiler(JsonTokenizer(), kLogits, InWorker());
  const GrammarSpec spec = Schema(R"({"type":"object","properties":{"a":{"type":"array",
      "items":{"type":"string","minLength":1},"minItems":2}},"required":["a"]})");
  const auto there = outside->Compile(spec), here = testing::InProcess().Compile(spec);
  ASSERT_TRUE(there) << there.error().message;
  ASSERT_TRUE(here);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(testing::RandomWalk(**there, *JsonTokenizer(), kLogits, seed, 50).text,
              testing::RandomWalk(**here, *JsonTokenizer(), kLogits, seed, 50).text);
  }
}

TEST(GrammarWorker, ManyAskAtOnce) {
  const auto compiler = NewGrammarCompiler(JsonTokenizer(), kLogits, InWorker());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        const auto schema = R"({"type":"integer","minimum":)" + std::to_string(i + t % 2) + "}";
        EXPECT_TRUE(compiler->Compile(Schema(schema)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace vivace::grammar
