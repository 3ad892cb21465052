#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/load_plan.h"
#include "engine/memory_plan.h"
#include "engine/testing/tiny_model.h"
#include "tune/report.h"

namespace vivace::tune {
namespace {

using ::testing::HasSubstr;

// A tiny model, and a space of four settings.
class TunerTest : public ::testing::Test {
 protected:
  TunerTest() {
    auto text = ReadModelText(model_.file());
    VIVACE_CHECK(text.has_value());
    text_ = std::move(*text);
    options_.engine.model = model_.file().path();
    options_.engine.num_kv_blocks = 256;
    options_.engine.threads = 1;
    options_.engine.isa = Isa::kReference;
    options_.space = {.max_num_seqs = {2, 8},
                      .max_num_batched_tokens = {64},
                      .max_itl_ms = {0, 50},
                      .kv_cache_dtypes = {std::nullopt},
                      .threads = {1}};
    options_.dataset.num_prompts = 12;
    options_.dataset.input_len = 12;
    options_.dataset.output_len = 6;
    options_.dataset.token_ids = true;
    options_.max_concurrency = 4;
    options_.budget_s = 4;  // it ends sooner, being done
    options_.out = out_;
  }
  ~TunerTest() override { std::filesystem::remove_all(out_); }

  TuneResult Run() {
    auto result = RunTune(options_, model_.file(), text_);
    if (result) return std::move(*result);
    ADD_FAILURE() << result.error().message;
    return {};
  }
  // The setting that `serve` would use.
  Setting Own() const {
    const auto plan = PlanLoad(options_.engine, model_.file(), AvailableMemory());
    VIVACE_CHECK(plan.has_value());
    return SettingOf(options_.engine, *plan);
  }
  std::string File(const std::string& name) const {
    std::ifstream file(out_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string out_ =
      (std::filesystem::temp_directory_path() / ("vivace_tune_" + std::to_string(getpid())))
          .string();
  testing::TinyModel model_;
  ModelText text_;
  TuneOptions options_;
};

TEST_F(TunerTest, MeasuresAndReports) {
  const TuneResult result = Run();
  ASSERT_TRUE(result.any);
  EXPECT_GT(result.trials, 1);
  ASSERT_TRUE(result.defaults);
  const Candidate& defaults = result.candidates[*result.defaults];
  EXPECT_TRUE(defaults.tried());
  EXPECT_EQ(defaults.setting, Own());
  EXPECT_TRUE(defaults.outside);
  const Candidate& winner = result.candidates[result.winner];
  EXPECT_EQ(winner.measured.figures.completed, 12);
  EXPECT_EQ(winner.measured.figures.output_tokens, 12 * 6);
  EXPECT_GT(winner.score.value, 0);
  EXPECT_FALSE(Reasons(result).empty());

  const ReportOptions report{.command = "vivace tune <x>",
                             .model = "a & b.gguf",
                             .fixed = {{"max-model-len", "128"}},
                             .out = out_};
  ASSERT_TRUE(WriteReports(result, report));
  const auto config = boost::json::parse(File("vivace.json")).get_object();
  EXPECT_EQ(config.at("model"), boost::json::value("a & b.gguf"));
  EXPECT_EQ(config.at("max-model-len"), boost::json::value("128"));
  EXPECT_EQ(config.at("max-num-seqs"), boost::json::value(winner.setting.max_num_seqs));
  EXPECT_EQ(config.at("provenance").at("unit"), boost::json::value("tok/s"));
  const auto pareto = boost::json::parse(File("pareto.json")).get_object();
  EXPECT_EQ(pareto.at("candidates").get_array().size(), result.candidates.size());
  EXPECT_EQ(pareto.at("winner"), boost::json::value(ToJson(winner.setting)));
  EXPECT_THAT(File("pareto.csv"), HasSubstr("max_num_seqs,"));
  const std::string html = File("report.html");
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("a &amp; b.gguf"));
  EXPECT_THAT(html, HasSubstr("vivace tune &lt;x&gt;"));
  EXPECT_THAT(TerminalTable(result), HasSubstr("<- best"));
}

bool IsWellMeasured(const Candidate& candidate) {
  double seconds = 0;
  for (const Trial& trial : candidate.trials) seconds += trial.measured.elapsed_s;
  return candidate.trials.size() >= Search::kEnoughTrials || seconds >= Search::kEnoughS;
}

// A trial takes milliseconds.
TEST_F(TunerTest, ShortTrialsAreRepeatedAndSmallnessIsSaid) {
  options_.budget_s = 120;
  const TuneResult result = Run();
  ASSERT_TRUE(result.any && result.defaults);
  for (const size_t i : {result.winner, *result.defaults}) {
    EXPECT_TRUE(IsWellMeasured(result.candidates[i]));
  }
  EXPECT_FALSE(result.brief);
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("fewer than 100 requests")));
  for (const Candidate& candidate : result.candidates) {
    if (!candidate.tried()) continue;
    EXPECT_EQ(candidate.score.value, candidate.measured.figures.output_throughput);
  }
}

TEST_F(TunerTest, TrialsThatAreShortAreNoProof) {
  options_.full_grid = true;  // each once
  options_.budget_s = 60;
  options_.dataset.num_prompts = 2;
  options_.dataset.output_len = 2;
  const TuneResult result = Run();
  ASSERT_TRUE(result.any && result.defaults);
  // On a machine that takes seconds for two answers of two tokens they are no longer short.
  const bool brief = !IsWellMeasured(result.candidates[result.winner]) ||
                     !IsWellMeasured(result.candidates[*result.defaults]);
  EXPECT_EQ(result.brief, brief);
  EXPECT_FALSE(brief && result.beats_defaults);
  const auto says = ::testing::Contains(HasSubstr("Trials were short"));
  if (brief) {
    EXPECT_THAT(result.notes, says);
  } else {
    EXPECT_THAT(result.notes, ::testing::Not(says));
  }
}

TEST_F(TunerTest, GoesOnFromItsJournal) {
  const TuneResult first = Run();
  const TuneResult second = Run();
  EXPECT_TRUE(second.resumed);
  EXPECT_GE(second.trials, first.trials);
  EXPECT_EQ(second.requests, first.requests);
  // Nothing was timed twice.
  size_t calibrations = 0;
  std::ifstream journal(out_ + "/journal.jsonl");
  for (std::string line; std::getline(journal, line);)
    calibrations += line.find("\"calibration\"") != std::string::npos;
  EXPECT_EQ(calibrations, 1u);
}

TEST_F(TunerTest, AJournalOfOtherTrafficIsRefused) {
  Run();
  options_.dataset.input_len = 13;
  const auto refused = RunTune(options_, model_.file(), text_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the traffic differs"));
}

TEST_F(TunerTest, StoppedItKeepsWhatItHas) {
  options_.full_grid = true;  // a search may be sure of its winner after one trial
  std::atomic<bool> stop{false};
  options_.stop = &stop;
  int measured = 0;
  options_.progress = [&](const TuneProgress& progress) {
    measured += progress.doing.starts_with("measuring");
    if (measured == 2) stop = true;
  };
  const TuneResult result = Run();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.trials, 1);
  ASSERT_TRUE(result.any);
  ASSERT_TRUE(WriteReports(result, {.command = "c", .model = "m", .out = out_}));
  EXPECT_THAT(File("report.html"), HasSubstr("Interrupted"));
}

TEST_F(TunerTest, StoppedAtOnceThereIsNothing) {
  const std::atomic<bool> stop{true};
  options_.stop = &stop;
  const TuneResult result = Run();
  EXPECT_FALSE(result.any);
  EXPECT_TRUE(WriteReports(result, {.command = "c", .model = "m", .out = out_}));
  EXPECT_FALSE(std::filesystem::exists(out_ + "/vivace.json"));
  EXPECT_THAT(TerminalTable(result), HasSubstr("nothing was measured"));
}

TEST_F(TunerTest, ATrialEndsWithTheBudget) {
  options_.dataset.num_prompts = 1000;
  options_.dataset.output_len = 60;
  options_.budget_s = 0.3;    // for some seconds of steps
  options_.full_grid = true;  // a trial may take all of it
  const TuneResult result = Run();
  EXPECT_EQ(result.why_done, "the budget ended");
  EXPECT_FALSE(result.interrupted);
  for (const Candidate& candidate : result.candidates) {
    for (const Trial& trial : candidate.trials) EXPECT_TRUE(trial.measured.partial);
  }
}

TEST_F(TunerTest, WithoutTimeNothingIsBegun) {
  options_.budget_s = 1e-6;
  const TuneResult result = Run();
  EXPECT_FALSE(result.any);
  EXPECT_EQ(result.why_done, "the budget ended");
  EXPECT_THAT(result.notes, ::testing::ElementsAre(HasSubstr("give a larger --budget")));
  EXPECT_THAT(File("journal.jsonl"), ::testing::Not(HasSubstr("calibration")));
}

TEST_F(TunerTest, WhatWasMeasuredIsReportedWhenTheBudgetIsSpent) {
  const TuneResult first = Run();
  options_.budget_s = 1e-6;
  const TuneResult again = Run();
  EXPECT_TRUE(again.any);
  EXPECT_EQ(again.trials, first.trials);
  EXPECT_EQ(again.why_done, "the budget ended");
}

TEST_F(TunerTest, TheGridIsMeasuredWhole) {
  options_.full_grid = true;
  options_.budget_s = 60;
  const TuneResult result = Run();
  EXPECT_EQ(result.settings, 4u);
  EXPECT_EQ(result.measured(), 4u);
  // And the defaults, to compare with.
  EXPECT_EQ(result.candidates.size(), 5u);
  EXPECT_EQ(result.trials, 5);
  for (const Candidate& candidate : result.candidates) EXPECT_TRUE(candidate.tried());
}

// The defaults compute four answers at once; the space, one.
TEST_F(TunerTest, WhatTheFlagsLeaveOutCannotWin) {
  options_.full_grid = true;
  options_.budget_s = 60;
  options_.space.max_num_seqs = {1};
  options_.space.max_itl_ms = {0};
  options_.dataset.output_len = 24;
  const TuneResult result = Run();
  ASSERT_TRUE(result.any && result.defaults);
  EXPECT_EQ(result.candidates[result.winner].setting.max_num_seqs, 1);
  EXPECT_NE(result.winner, *result.defaults);
  EXPECT_FALSE(result.candidates[*result.defaults].front);
  for (const auto& [setting, index] : result.standing) EXPECT_NE(index, *result.defaults);
}

// Their workspace is that of 8,192 tokens.
TEST_F(TunerTest, DefaultsThatDoNotFitAreLeftOut) {
  options_.engine.max_num_batched_tokens = 8192;
  options_.space = {.max_num_seqs = {2},
                    .max_num_batched_tokens = {64},
                    .max_itl_ms = {0},
                    .kv_cache_dtypes = {std::nullopt},
                    .threads = {1}};
  EngineConfig small = options_.engine;
  Apply(SettingsOf(options_.space)->front(), &small);
  options_.available = PlanLoad(small, model_.file(), 0)->bytes() + (1u << 20);
  ASSERT_FALSE(PlanLoad(options_.engine, model_.file(), *options_.available));
  const TuneResult result = Run();
  EXPECT_TRUE(result.any);
  EXPECT_FALSE(result.defaults);
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("they do not fit")));
  ASSERT_TRUE(WriteReports(result, {.command = "c", .model = "m", .out = out_}));
  EXPECT_THAT(TerminalTable(result), HasSubstr("<- best"));
}

TEST_F(TunerTest, WhereNothingFitsTheReasonIsSaid) {
  options_.available = 1;
  const auto refused = RunTune(options_, model_.file(), text_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("none of the 4 settings fits this machine: "));
}

// Another process may take memory between two sessions.
TEST_F(TunerTest, TheMemoryIsReadOnce) {
  Run();
  options_.available = 1;
  const TuneResult again = Run();
  EXPECT_TRUE(again.any);
  EXPECT_EQ(again.left_out, 0u);
}

TEST_F(TunerTest, PromisesThatNoAnswerCanHaveAreRefused) {
  options_.dataset.output_len = 1;
  options_.slo = *load::ParseSlos("p99:itl:50", "slo");
  const auto refused = RunTune(options_, model_.file(), text_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("answers of one token"));
}

TEST_F(TunerTest, WhereNothingKeepsThePromiseItIsSaid) {
  options_.full_grid = true;
  options_.budget_s = 60;
  options_.slo = *load::ParseSlos("p99:ttft:0.0001", "slo");
  const TuneResult result = Run();
  ASSERT_TRUE(result.any);
  EXPECT_THAT(Reasons(result),
              ::testing::Contains(HasSubstr("None of the 4 settings measured keeps the promise")));
}

// Its dataset is a file, and the file is another one.
TEST_F(TunerTest, AJournalOfAnotherDatasetIsRefused) {
  const std::string path = out_ + ".jsonl";
  const auto write = [&](int tokens) {
    std::ofstream(path) << R"({"prompt": "abc", "output_tokens": )" << tokens << "}\n";
  };
  options_.dataset.name = "jsonl";
  options_.dataset.path = path;
  write(3);
  Run();
  write(4);
  const auto refused = RunTune(options_, model_.file(), text_);
  std::filesystem::remove(path);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the traffic differs"));
}

// Forecasts, and what was cut off, as well.
TEST_F(TunerTest, TheTimeOfAllSessionsIsCounted) {
  const TuneResult first = Run();
  const TuneResult second = Run();
  EXPECT_GT(second.spent_s, first.spent_s);
  EXPECT_THAT(File("journal.jsonl"), HasSubstr("\"spent\""));
  options_.budget_s = first.spent_s;  // spent already, however long opening took
  const TuneResult third = Run();
  EXPECT_EQ(third.trials, second.trials);  // all that were measured, and none more
  EXPECT_EQ(third.why_done, "the budget ended");
}

TEST_F(TunerTest, TrialsOfAnotherSpaceAreNoted) {
  options_.full_grid = true;
  options_.budget_s = 60;
  Run();
  options_.space.max_num_seqs = {8};
  const TuneResult narrowed = Run();
  EXPECT_EQ(narrowed.trials, 3);  // two and the defaults
  EXPECT_THAT(narrowed.notes, ::testing::Contains(HasSubstr("2 trials of earlier sessions")));
}

TEST_F(TunerTest, WhatCannotFitIsLeftOut) {
  options_.dataset.input_len = 250;
  options_.dataset.output_len = 50;  // more than the context of 256
  options_.engine.num_kv_blocks = 4;
  const auto refused = RunTune(options_, model_.file(), text_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("request 1"));
}

}  // namespace
}  // namespace vivace::tune
