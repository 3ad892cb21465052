// Answers whose bytes come at times that a script gives: what the client makes of them is compared
// with the script to the last digit. No clock and no socket, so nothing is allowed for lateness;
// runner_test.cc has both.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "load/client/answer_reader.h"
#include "load/figures.h"
#include "load/random.h"

namespace vivace::load {
namespace {

constexpr int64_t kMs = 1'000'000;

struct ScriptedEvent {
  int64_t at_ns;
  int32_t tokens;
};

struct ScriptedAnswer {
  enum class End { kWhole, kRefused, kCut, kErrorEvent } end = End::kWhole;
  int64_t scheduled_ns = 0, sent_ns = 0;
  std::vector<ScriptedEvent> events;
};

struct Scenario {
  const char* name;
  bool counts = true;         // usage in every event
  int32_t most_tokens = 1;    // of an event
  int fails_every = 0;        // one in so many, in each way
  int64_t late_ns = 0;        // sent after it was due, up to
  int64_t slow_start_ns = 0;  // of the first answers
  int stalls_every = 0;       // one in so many, for ten seconds
};

ScriptedAnswer Make(const Scenario& scenario, int32_t i, Random* random) {
  const auto upto = [&](int64_t most) {
    return static_cast<int64_t>(random->Below(static_cast<size_t>(most) + 1));
  };
  ScriptedAnswer answer;
  answer.scheduled_ns = 1'000 * kMs + i * 7 * kMs + upto(kMs);
  answer.sent_ns = answer.scheduled_ns + upto(scenario.late_ns);
  int64_t at = answer.sent_ns + 20 * kMs + upto(30 * kMs) + (i < 5 ? scenario.slow_start_ns : 0);
  const size_t events = 2 + random->Below(40);
  for (size_t e = 0; e < events; ++e) {
    const auto most = static_cast<size_t>(scenario.most_tokens);
    answer.events.push_back({at, 1 + static_cast<int32_t>(random->Below(most))});
    at += 5 * kMs + upto(9 * kMs);
    if (scenario.stalls_every > 0 && i % scenario.stalls_every == 1 && e == 1) at += 10'000 * kMs;
  }
  if (scenario.fails_every > 0 && i % scenario.fails_every == 0) {
    answer.end = static_cast<ScriptedAnswer::End>(1 + i / scenario.fails_every % 3);
  }
  return answer;
}

std::string TextOf(const ScriptedEvent& event, int32_t tokens_so_far, bool counts) {
  std::string text = "data: {\"choices\":[{\"text\":\"" +
                     std::string(static_cast<size_t>(event.tokens), 'x') + "\"}]";
  if (counts) text += ",\"usage\":{\"completion_tokens\":" + std::to_string(tokens_so_far) + "}";
  return text + "}\n\n";
}

// Every event comes in two reads; it is there with the second.
RequestRecord Play(const ScriptedAnswer& answer, int32_t index, bool counts) {
  using End = ScriptedAnswer::End;
  RequestRecord record;
  record.index = index;
  record.scheduled_ns = answer.scheduled_ns;
  record.sent_ns = answer.sent_ns;
  AnswerReader reader;
  reader.Begin(&record, {.max_events = 1'000});
  const bool refused = answer.end == End::kRefused;
  reader.OnHeader(refused ? "HTTP/1.1 503 Busy\r\n" : "HTTP/1.1 200 OK\r\n");
  int32_t tokens = 0;
  int64_t now_ns = answer.sent_ns;
  for (const ScriptedEvent& event : answer.events) {
    const std::string text = TextOf(event, tokens += event.tokens, counts);
    reader.OnBody(text.substr(0, text.size() / 2), now_ns + (event.at_ns - now_ns) / 2);
    reader.OnBody(text.substr(text.size() / 2), now_ns = event.at_ns);
  }
  if (answer.end == End::kErrorEvent) reader.OnBody("data: {\"error\":\"no memory\"}\n\n", now_ns);
  if (answer.end == End::kWhole) {
    reader.OnBody("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":" +
                      std::to_string(tokens) + "}}\n\ndata: [DONE]\n\n",
                  now_ns + kMs);
  }
  reader.End({.clean = answer.end != End::kCut, .transport = "it broke"}, now_ns + 2 * kMs);
  return record;
}

// By the script alone.
Figures TruthOf(const std::vector<ScriptedAnswer>& answers, bool counts) {
  std::vector<double> ttft, tpot, itl, e2el;
  for (const ScriptedAnswer& answer : answers) {
    if (answer.end != ScriptedAnswer::End::kWhole) continue;
    const auto ms = [](int64_t ns) { return static_cast<double>(ns) / kMs; };
    const auto& events = answer.events;
    ttft.push_back(ms(events.front().at_ns - answer.scheduled_ns));
    e2el.push_back(ms(events.back().at_ns - answer.scheduled_ns));
    int32_t tokens = 0;
    for (const ScriptedEvent& event : events) tokens += event.tokens;
    tpot.push_back(ms(events.back().at_ns - events.front().at_ns) / (tokens - 1));
    for (size_t e = 1; e < events.size(); ++e) {
      const int32_t shares = counts ? events[e].tokens : 1;
      const double gap = ms(events[e].at_ns - events[e - 1].at_ns) / shares;
      itl.insert(itl.end(), static_cast<size_t>(shares), gap);
    }
  }
  Figures figures;
  figures.ttft_ms = Describe(std::move(ttft));
  figures.tpot_ms = Describe(std::move(tpot));
  figures.itl_ms = Describe(std::move(itl));
  figures.e2el_ms = Describe(std::move(e2el));
  return figures;
}

void ExpectExact(const Scenario& scenario) {
  SCOPED_TRACE(scenario.name);
  constexpr int32_t kAnswers = 300;
  Random random(26, 7);
  std::vector<ScriptedAnswer> answers;
  std::vector<RequestRecord> records;
  int64_t whole = 0;
  for (int32_t i = 0; i < kAnswers; ++i) {
    answers.push_back(Make(scenario, i, &random));
    records.push_back(Play(answers.back(), i, scenario.counts));
    whole += answers.back().end == ScriptedAnswer::End::kWhole;
  }
  const Figures told = ComputeFigures(records, {}), truth = TruthOf(answers, scenario.counts);
  EXPECT_EQ(told.completed, whole);
  EXPECT_EQ(told.failed, kAnswers - whole);
  EXPECT_EQ(told.itl_per_token, scenario.counts);
  for (const auto figure :
       {&Figures::ttft_ms, &Figures::tpot_ms, &Figures::itl_ms, &Figures::e2el_ms}) {
    const Distribution &a = told.*figure, &b = truth.*figure;
    EXPECT_EQ(a.n, b.n);
    for (const auto statistic : {&Distribution::mean, &Distribution::p50, &Distribution::p90,
                                 &Distribution::p99, &Distribution::max}) {
      EXPECT_NEAR(a.*statistic, b.*statistic, 1e-9 * b.*statistic);
    }
  }
}

TEST(ScriptedTruth, EveryFigureIsTheScripts) {
  ExpectExact({.name = "plain"});
  ExpectExact({.name = "coalesced", .most_tokens = 5});
  ExpectExact({.name = "coalesced, not counted", .counts = false, .most_tokens = 5});
  ExpectExact({.name = "failures", .most_tokens = 3, .fails_every = 4});
  ExpectExact({.name = "slow starts", .late_ns = 40 * kMs, .slow_start_ns = 3'000 * kMs});
  ExpectExact({.name = "stalls", .stalls_every = 9});
}

}  // namespace
}  // namespace vivace::load
