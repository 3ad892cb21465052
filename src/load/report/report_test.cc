#include "load/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "base/limits.h"
#include "load/report/fields.h"
#include "load/testing/make_run.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

using testing::Failed;
using ::testing::HasSubstr;
using testing::MakeRun;
using ::testing::Not;
using ::testing::StartsWith;

namespace json = boost::json;

RunResult FullRun() {
  RunResult run = MakeRun({.requests = 40, .tokens = 6});
  run.records.push_back(Failed(40, 1000, Outcome::kRefused, "503: \"full\"\n<b>"));
  run.records[1].chunk_tokens.assign(6, 1);
  run.records[2].server_queue_ms = 3.25;
  run.records[3].cached_tokens = 8;
  run.promises = {{Promise::What::kTtft, 80}, {Promise::What::kItl, 50}};
  run.figures = ComputeFigures(run.records, run.promises);
  run.server = {{0, 1, 0, 0.25, 0, -1}, {1, 8, 2, 0.5, 1, 0.75}};
  run.seed = 18'446'744'073'709'551'615u;
  run.partial = true;
  run.note = "interrupted";
  return run;
}

json::object Parsed(const std::string& text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  EXPECT_FALSE(error) << error.message();
  return value.is_object() ? value.get_object() : json::object();
}

TEST(ReportJson, HasVllmsNamesAllOfThemAlways) {
  for (const RunResult& run : {FullRun(), RunResult{}}) {
    const json::object report = Parsed(ReportJson({run}, false));
    for (const char* stat : {"mean", "median", "std", "p50", "p90", "p99"}) {
      for (const char* latency : {"ttft", "tpot", "itl", "e2el"}) {
        EXPECT_TRUE(report.contains(std::string(stat) + "_" + latency + "_ms")) << stat << latency;
      }
    }
    for (const char* name : {"date",
                             "model_id",
                             "num_prompts",
                             "request_rate",
                             "burstiness",
                             "max_concurrency",
                             "duration",
                             "completed",
                             "failed",
                             "total_input_tokens",
                             "total_output_tokens",
                             "request_throughput",
                             "request_goodput",
                             "output_throughput",
                             "total_token_throughput",
                             "max_concurrent_requests",
                             "max_output_tokens_per_s",
                             "definitions",
                             "environment",
                             "valid",
                             "invalid_because"}) {
      EXPECT_TRUE(report.contains(name)) << name;
    }
    EXPECT_FALSE(report.contains("ttfts"));
  }
}

TEST(ReportJson, WhatIsNotThereIsNull) {
  const std::string text = ReportJson({RunResult{}}, true);
  const json::object report = Parsed(text);
  EXPECT_TRUE(report.at("mean_ttft_ms").is_null());
  EXPECT_TRUE(report.at("request_goodput").is_null());
  EXPECT_TRUE(report.at("max_concurrency").is_null());
  EXPECT_EQ(report.at("request_rate").as_string(), "inf");
  EXPECT_FALSE(report.at("valid").as_bool());
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(ReportJson, DetailsAreVllms) {
  const RunResult run = FullRun();
  const json::object report = Parsed(ReportJson({run}, true));
  EXPECT_EQ(report.at("ttfts").as_array().size(), 41u);
  EXPECT_EQ(report.at("itls").as_array()[0].as_array().size(), 5u);
  EXPECT_EQ(report.at("itls").as_array()[40].as_array().size(), 0u);
  EXPECT_DOUBLE_EQ(report.at("ttfts").as_array()[0].to_number<double>(),
                   TimesOf(run.records[0]).ttft_ms / 1e3);
  EXPECT_EQ(report.at("errors").as_array()[0].as_string(), "");
  EXPECT_EQ(report.at("errors").as_array()[40].as_string(), "503: \"full\"\n<b>");
  EXPECT_EQ(report.at("output_lens").as_array()[0].as_int64(), 6);
}

constexpr double kExact = 1e-9;  // of figures up to thousands, written with 15 digits

void ExpectSame(const Figures& a, const Figures& b) {
  for (const FigureField& field : FigureFields()) {
    std::visit(
        [&](auto member) {
          EXPECT_NEAR(static_cast<double>(a.*member), static_cast<double>(b.*member), kExact)
              << field.name;
        },
        field.member);
  }
  for (const LatencyField& latency : LatencyFields()) {
    EXPECT_EQ((a.*latency.member).n, (b.*latency.member).n) << latency.name;
    for (const StatField& stat : StatFields()) {
      EXPECT_NEAR(a.*latency.member.*stat.member, b.*latency.member.*stat.member, kExact)
          << stat.name << latency.name;
    }
  }
  EXPECT_EQ(a.failures, b.failures);
}

TEST(ReadReport, GivesTheSameReportAgain) {
  const RunResult run = FullRun();
  const std::string text = ReportJson({run}, true);
  const auto read = ParseReport(text, "r.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 1u);
  const RunResult& back = read->front();
  EXPECT_EQ(ReportJson({back}, true), text);
  ExpectSame(back.figures, run.figures);
  // And the records give the figures that the file has.
  ExpectSame(ComputeFigures(back.records, back.promises), run.figures);
  EXPECT_EQ(back.seed, run.seed);
  EXPECT_EQ(back.records[40].reason, "503: \"full\"\n<b>");
  EXPECT_EQ(back.server.size(), 2u);
  EXPECT_EQ(Warnings(back), Warnings(run));
}

// A gap is in a file once, of what completed and of what did not, and comes back to the nanosecond.
TEST(ReadReport, GapsAreWrittenOnceAndReadExactly) {
  RunResult run = MakeRun({.requests = 30, .tokens = 768});
  run.records[7].outcome = Outcome::kCut;
  run.records[8].empty_ns = {run.records[8].sent_ns + 5, run.records[8].last_ns + 7};
  run.started_ns = run.records[0].scheduled_ns - 1'000'000;
  run.shared_prompts = 0.25;
  run.figures = ComputeFigures(run.records, {});
  const std::string text = ReportJson({run}, true);
  const auto read = ParseReport(text, "r.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const RunResult& back = (*read)[0];
  EXPECT_DOUBLE_EQ(back.shared_prompts, 0.25);
  const int64_t moved = back.started_ns - run.started_ns;
  for (size_t i = 0; i < run.records.size(); ++i) {
    const auto same = [&](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [&](int64_t x, int64_t y) { return x + moved == y; });
    };
    EXPECT_TRUE(same(run.records[i].chunk_ns, back.records[i].chunk_ns)) << i;
    EXPECT_TRUE(same(run.records[i].empty_ns, back.records[i].empty_ns)) << i;
  }
  size_t gaps = 0;
  for (const RequestRecord& r : run.records) gaps += r.chunk_ns.size();
  // What the run of the presets' eight concurrencies with two thousand requests each has.
  const double most_gaps = 8 * 2'000 * 768.0;
  EXPECT_LT(static_cast<double>(text.size()) / static_cast<double>(gaps) * most_gaps,
            static_cast<double>(limits::kMaxReportBytes));
}

TEST(ReadReport, KnowsTheLoadItWas) {
  RunResult ramp = FullRun();
  ramp.request_rate = 0;
  ramp.ramp = ArrivalOptions::Ramp::kExponential;
  ramp.ramp_from = 0.5;
  ramp.ramp_to = 20;
  ramp.label.clear();
  RunResult trace = FullRun();
  trace.request_rate = 0;
  trace.own_times = true;
  trace.label.clear();
  const json::object report = Parsed(ReportJson({ramp}, false));
  EXPECT_EQ(report.at("ramp_up_strategy").as_string(), "exponential");  // as vLLM has them
  EXPECT_EQ(report.at("ramp_up_start_rps").to_number<double>(), 0.5);
  EXPECT_EQ(report.at("ramp_up_end_rps").to_number<double>(), 20);
  EXPECT_FALSE(Parsed(ReportJson({trace}, false)).contains("ramp_up_strategy"));
  const auto runs = ParseReport(ReportJson({ramp, trace}, true), "r.json");
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(RateText(runs->at(0)), "0.5 to 20/s exponential");
  EXPECT_EQ(runs->at(0).label, LabelOf(ramp));
  EXPECT_EQ(RateText(runs->at(1)), "each at its own time");
  EXPECT_EQ(runs->at(1).label, LabelOf(trace));
  EXPECT_THAT(ReportHtml({ramp}), HasSubstr("0.5 to 20/s exponential"));
  EXPECT_THAT(ReportHtml({trace}), HasSubstr("each at its own time"));
  EXPECT_THAT(TerminalTable({ramp}, ""), HasSubstr("0.5 to 20/s exponential"));
  EXPECT_THAT(ReportCsv({ramp}), HasSubstr(",exponential,0.5,20,"));
}

TEST(ReadReport, ASearchStandsBesideItsRuns) {
  const RunResult run = MakeRun({.requests = 4});
  const std::string text = ReportJson({run}, true, R"({"kept":2.5})");
  EXPECT_DOUBLE_EQ(Parsed(text).at("search").at("kept").as_double(), 2.5);
  const auto read = ParseReport(text, "r.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->size(), 1u);
}

TEST(ReadReport, SeveralRuns) {
  const std::vector<RunResult> runs = {MakeRun({.concurrency = 1, .requests = 4}), FullRun()};
  const auto read = ParseReport(ReportJson(runs, false), "r.json");
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].label, "c=1");
  EXPECT_TRUE((*read)[1].records.empty());
  ExpectSame((*read)[1].figures, runs[1].figures);
}

// What `vllm bench serve --save-result --save-detailed` leaves (names of version 0.32).
TEST(ReadReport, AResultOfVllm) {
  const auto read = ParseReport(R"({"date": "20261130-120000", "endpoint_type": "openai",
    "backend": "openai", "label": null, "model_id": "m", "tokenizer_id": "m", "num_prompts": 2,
    "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 2, "duration": 1.5,
    "completed": 2, "failed": 1, "total_input_tokens": 30, "total_output_tokens": 5,
    "request_throughput": 1.33, "request_goodput": null, "output_throughput": 3.3,
    "total_token_throughput": 23.3, "input_lens": [10, 20, 7], "output_lens": [3, 2, 0],
    "ttfts": [0.5, 0.25, 0.0], "itls": [[0.1, 0.2], [0.05], []],
    "generated_texts": ["a", "b", ""], "errors": ["", "", "boom"],
    "mean_ttft_ms": 375.0, "median_ttft_ms": 375.0, "std_ttft_ms": 125.0, "p99_ttft_ms": 497.5,
    "mean_tpot_ms": 100.0, "median_tpot_ms": 100.0, "std_tpot_ms": 50.0, "p99_tpot_ms": 149.0,
    "mean_itl_ms": 116.7, "median_itl_ms": 100.0, "std_itl_ms": 62.4, "p99_itl_ms": 198.0})",
                                "vllm.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const RunResult& run = read->front();
  EXPECT_EQ(run.model, "m");
  EXPECT_EQ(run.max_concurrency, 2);
  EXPECT_EQ(run.request_rate, 0);
  EXPECT_DOUBLE_EQ(run.figures.ttft_ms.mean, 375);
  EXPECT_DOUBLE_EQ(run.figures.ttft_ms.p50, 375);
  // What the file does not say comes from its arrays.
  EXPECT_DOUBLE_EQ(run.figures.ttft_ms.p90, 475);
  EXPECT_EQ(run.figures.itl_ms.n, 3);
  EXPECT_DOUBLE_EQ(run.figures.e2el_ms.max, 800);
  EXPECT_EQ(run.figures.requests, 2);
  EXPECT_EQ(run.figures.failures.at("boom"), 1);
  EXPECT_EQ(run.label, "c=2");
  ASSERT_EQ(run.records.size(), 3u);
  EXPECT_DOUBLE_EQ(TimesOf(run.records[0]).ttft_ms, 500);
  EXPECT_DOUBLE_EQ(TimesOf(run.records[0]).tpot_ms, 150);
  EXPECT_DOUBLE_EQ(TimesOf(run.records[1]).e2el_ms, 300);
  EXPECT_EQ(run.records[2].outcome, Outcome::kRefused);
  EXPECT_EQ(run.records[2].reason, "boom");
  // It can be reported, without a NaN.
  EXPECT_THAT(ReportJson(*read, true), Not(HasSubstr("nan")));
}

TEST(ReadReport, LinesOfAppendedResults) {
  const std::string line = ReportJson({MakeRun({.requests = 3})}, false);
  const auto read = ParseReport(line + "\n" + line + "\n\n", "r.jsonl");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->size(), 2u);
}

TEST(ReadReport, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> kBad[] = {
      {"", "r.json: not JSON: it is empty"},
      {"{", "r.json: not JSON"},
      {"3", "not a JSON object"},
      {"{}", "not a result of a serving benchmark"},
      {"{\"runs\": []}", "\"runs\" is not a list of 1 to"},
      {"{\"runs\": [3]}", "\"runs\" has no objects"},
      {"{\"completed\": \"x\", \"duration\": 1}", "\"completed\" is not a number"},
      {"{\"completed\": 1e300, \"duration\": 1}", "\"completed\" is not in range"},
      {"{\"completed\": -4, \"duration\": 1}", "\"completed\" is not in range"},
      {"{\"completed\": 1, \"duration\": 1, \"ttfts\": 5}", "\"ttfts\" is not an array"},
      {"{\"completed\": 1, \"duration\": 1, \"ttfts\": [\"a\"]}",
       "\"ttfts\" is not made of numbers"},
      {"{\"completed\": 1, \"duration\": 1, \"label\": {}}", "\"label\" is not a text"},
      {"{\"completed\": 1, \"duration\": 1, \"requests\": [{\"chunk_gaps_ns\": [-5]}]}",
       "\"chunk_gaps_ns\" is not made of gaps"},
      {"{\"completed\": 1, \"duration\": 1, \"ttfts\": [1], \"itls\": [[9e6, 9e6]]}",
       "\"itls\" is not made of gaps"},
      {"{\"completed\": 1, \"duration\": 1, \"requests\": [{\"first_ns\": 1}], \"itls\": [[-1]]}",
       "\"itls\" is not made of gaps"},
      {"{\"completed\": 1, \"duration\": 1, \"requests\": [{\"empty_ns\": [-1]}]}",
       "\"empty_ns\" is not made of moments"},
      {"{\"completed\": 1, \"duration\": 1, \"requests\": [{\"output_tokens\": 1e12}]}",
       "\"output_tokens\" is not in range"},
  };
  for (const auto& [text, why] : kBad) {
    const auto read = ParseReport(text, "r.json");
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_THAT(read.error().message, HasSubstr(why)) << text;
  }
  EXPECT_FALSE(ReadReport("/nowhere/r.json").has_value());
}

TEST(TerminalTable, OneRunIsVllmsBlock) {
  const std::string text = TerminalTable({MakeRun({.requests = 200})}, "");
  EXPECT_THAT(text, StartsWith("============ Serving Benchmark Result ============\n"));
  EXPECT_THAT(text, HasSubstr("Successful requests:                     200"));
  EXPECT_THAT(text, HasSubstr("---------------Time to First Token----------------"));
  EXPECT_THAT(text, HasSubstr("Median TTFT (ms):"));
  EXPECT_THAT(text, HasSubstr("Inter-token Latency, per chunk"));
  EXPECT_THAT(text, HasSubstr("-End-to-end Latency-"));
  EXPECT_THAT(text, HasSubstr("P99 E2EL (ms):"));
}

TEST(TerminalTable, SaysFirstWhetherTheRunCounts) {
  RunResult run = FullRun();
  run.client.bottleneck = true;
  EXPECT_THAT(TerminalTable({run}, ""), StartsWith("INVALID: 1 of 41 requests failed"));
  EXPECT_THAT(TerminalTable({run, run}, ""), StartsWith("INVALID (c=8): 1 of 41"));
  EXPECT_THAT(ReportJson({run}, false), StartsWith("{\"format\":2,\"tool\":\"vivace "));
  EXPECT_THAT(ReportHtml({run}), HasSubstr("This run is invalid"));
}

TEST(TerminalTable, SeveralRunsAreARowEach) {
  const std::string text = TerminalTable(
      {MakeRun({.concurrency = 1, .requests = 10}), MakeRun({.concurrency = 16, .requests = 160})},
      "guidellm");
  EXPECT_THAT(text, HasSubstr("\nc=1 "));
  EXPECT_THAT(text, HasSubstr("\nc=16 "));
  EXPECT_THAT(text, HasSubstr("By guidellm's definitions"));
  EXPECT_THAT(text, HasSubstr("\ninter_token_latency_ms.mean"));
}

TEST(TerminalTable, ObeysNoStranger) {
  RunResult run = FullRun();
  run.label = "c=8\x1b]0;owned\x07";
  run.records[40].reason = "\x1b[2J\x9b;1mbad \xff";
  run.figures = ComputeFigures(run.records, run.promises);
  const std::string text = TerminalTable({run, run}, "vllm");
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_EQ(text.find('\x07'), text.npos);
  EXPECT_EQ(text.find('\x9b'), text.npos);
}

TEST(ReportCsv, ARowPerRunAndNoFormula) {
  RunResult run = FullRun();
  run.model = "=HYPERLINK(\"http://x\")";
  const std::string text = ReportCsv({run, MakeRun({.requests = 4})});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, StartsWith("label,model_id,"));
  EXPECT_THAT(text, HasSubstr("\"'=HYPERLINK(\"\"http://x\"\")\""));
  const std::string header = text.substr(0, text.find('\n'));
  EXPECT_THAT(header, HasSubstr(",p99_ttft_ms,"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace vivace::load
