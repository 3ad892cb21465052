#include "load/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/clock.h"

namespace vivace::load {
namespace {

constexpr size_t kMostReasons = 32;  // apart; further ones are counted together
constexpr size_t kMostReasonBytes = 200;
constexpr double kSteadyShare = 0.9;  // of the peak concurrency

bool Completed(const RequestRecord& r) { return r.outcome == Outcome::kCompleted; }
bool HasContent(const RequestRecord& r) { return r.first_ns != 0; }
bool HasEnded(const RequestRecord& r) { return r.ended_ns != 0; }

void CountFailure(const RequestRecord& record, std::map<std::string, int64_t>* failures) {
  std::string reason = record.reason.empty() ? std::string(Name(record.outcome))
                                             : record.reason.substr(0, kMostReasonBytes);
  if (!failures->contains(reason) && failures->size() >= kMostReasons) reason = "other reasons";
  ++(*failures)[reason];
}

void CountOutcome(const RequestRecord& record, Figures* f) {
  if (record.outcome == Outcome::kNotRun) {
    ++f->not_run;
    f->interrupted += record.sent_ns != 0;
  } else if (Completed(record)) {
    ++f->completed;
    f->input_tokens += record.prompt_tokens;
    f->output_tokens += record.output_tokens;
    f->cached_tokens += std::max(record.cached_tokens, 0);
    if (record.counted && record.wanted_output_tokens > 0 &&
        record.output_tokens != record.wanted_output_tokens) {
      ++f->wrong_lengths;
    }
  } else {
    ++f->failed;
    CountFailure(record, &f->failures);
  }
}

double DurationSeconds(std::span<const RequestRecord> records) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (const RequestRecord& record : records) {
    if (!HasEnded(record) || record.outcome == Outcome::kNotRun) continue;
    first = std::min(first, record.scheduled_ns);
    last = std::max(last, record.ended_ns);
  }
  return last > first ? static_cast<double>(last - first) / 1e9 : 0;
}

// How many requests were under way, as steps: (time, how many from then on).
std::vector<std::pair<int64_t, int32_t>> UnderWay(std::span<const RequestRecord> records) {
  std::vector<std::pair<int64_t, int32_t>> changes;
  for (const RequestRecord& record : records) {
    if (!HasEnded(record) || record.sent_ns == 0) continue;
    changes.emplace_back(record.sent_ns, 1);
    changes.emplace_back(record.ended_ns, -1);
  }
  // Ends come before starts of the same moment: a place handed on is one place.
  std::sort(changes.begin(), changes.end());
  int32_t now = 0;
  for (auto& [at, change] : changes) change = now += change;
  return changes;
}

// The token events of completed requests that fall into (begin, end], for the steady state.
struct TokenEvent {
  int64_t at;
  double tokens;
};

std::vector<TokenEvent> TokenEvents(std::span<const RequestRecord> records) {
  std::vector<TokenEvent> events;
  for (const RequestRecord& r : records) {
    if (!Completed(r) || r.chunk_ns.empty()) continue;
    const bool counts = CountsTokens(r);
    const double share = static_cast<double>(r.output_tokens) / r.chunk_ns.size();
    for (size_t i = 0; i < r.chunk_ns.size(); ++i) {
      events.push_back({r.chunk_ns[i], counts ? r.chunk_tokens[i] : share});
    }
  }
  std::sort(events.begin(), events.end(),
            [](const TokenEvent& a, const TokenEvent& b) { return a.at < b.at; });
  return events;
}

// When the last of the requests ends that were the first to take all places: until then a closed
// loop, which starts them all at once, is in one phase.
int64_t FirstWaveEnd(std::span<const RequestRecord> records,
                     std::span<const std::pair<int64_t, int32_t>> steps, int32_t enough) {
  const auto full = std::find_if(steps.begin(), steps.end(),
                                 [&](const auto& step) { return step.second >= enough; });
  if (full == steps.end()) return 0;
  int64_t end = 0;
  for (const RequestRecord& record : records) {
    if (!HasEnded(record) || record.sent_ns == 0 || record.sent_ns > full->first) continue;
    end = std::max(end, record.ended_ns);
  }
  return end;
}

void FillSteadyState(std::span<const RequestRecord> records, std::span<const TokenEvent> events,
                     Figures* f) {
  const auto steps = UnderWay(records);
  for (const auto& [at, count] : steps) f->peak_concurrency = std::max(f->peak_concurrency, count);
  const auto enough = static_cast<int32_t>(std::ceil(f->peak_concurrency * kSteadyShare));
  const int64_t wave_end = FirstWaveEnd(records, steps, enough);
  size_t next = 0;
  double tokens = 0;
  int64_t ns = 0;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const int64_t begin = std::max(steps[i].first, wave_end), end = steps[i + 1].first;
    if (steps[i].second < enough || end <= begin) continue;
    ns += end - begin;
    while (next < events.size() && events[next].at <= begin) ++next;
    for (; next < events.size() && events[next].at <= end; ++next) tokens += events[next].tokens;
  }
  f->steady_s = static_cast<double>(ns) / 1e9;
  if (ns > 0) f->steady_output_throughput = tokens / f->steady_s;
}

// Whole seconds after the first completed request was scheduled, as vLLM counts them.
void FillPeakSecond(std::span<const RequestRecord> records, std::span<const TokenEvent> events,
                    Figures* f) {
  int64_t begin = std::numeric_limits<int64_t>::max(), second = -1;
  for (const RequestRecord& r : records) {
    if (Completed(r)) begin = std::min(begin, r.scheduled_ns);
  }
  double tokens = 0;
  for (const TokenEvent& event : events) {
    const int64_t at = (event.at - begin) / kNanosPerSecond;
    if (at != second) tokens = 0;
    second = at;
    tokens += event.tokens;
    f->peak_second_tokens = std::max(f->peak_second_tokens, tokens);
  }
}

double SendLagMs(const RequestRecord& sent) { return Millis(sent.sent_ns - sent.scheduled_ns); }

struct Samples {
  std::vector<double> ttft, tpot, itl, e2el, queue, server_queue, lag;
  int64_t under_way_ns = 0;
};

Samples Collect(std::span<const RequestRecord> records, Figures* f) {
  Samples s;
  int64_t chunks = 0, chunked_tokens = 0;
  for (const RequestRecord& record : records) {
    const bool sent = record.sent_ns != 0;
    if (sent) s.lag.push_back(SendLagMs(record));
    if (!Completed(record)) continue;
    if (record.server_queue_ms >= 0) s.server_queue.push_back(record.server_queue_ms);
    if (sent) s.queue.push_back(s.lag.back());
    if (!HasContent(record)) continue;
    const RequestTimes times = TimesOf(record);
    s.ttft.push_back(times.ttft_ms);
    s.e2el.push_back(times.e2el_ms);
    s.under_way_ns += record.last_ns - record.sent_ns;
    if (times.tpot_ms >= 0) s.tpot.push_back(times.tpot_ms);
    AppendGaps(record, f->itl_per_token, &s.itl);
    if (record.choices > 1) continue;
    chunks += static_cast<int64_t>(record.chunk_ns.size());
    chunked_tokens += record.output_tokens;
  }
  if (chunks > 0) f->tokens_per_chunk = static_cast<double>(chunked_tokens) / chunks;
  return s;
}

void FillThroughput(Figures* f) {
  if (f->duration_s <= 0) return;
  f->request_throughput = f->completed / f->duration_s;
  f->input_throughput = f->input_tokens / f->duration_s;
  f->output_throughput = f->output_tokens / f->duration_s;
  f->total_throughput = f->input_throughput + f->output_throughput;
}

void FillGoodput(std::span<const RequestRecord> records, std::span<const Promise> promises,
                 Figures* f) {
  if (promises.empty()) return;
  int64_t good = 0;
  for (const RequestRecord& record : records) {
    good += Completed(record) && KeepsPromises(record, promises);
  }
  const int64_t ended = f->completed + f->failed;
  f->goodput = f->duration_s > 0 ? good / f->duration_s : 0;
  f->good_share = ended > 0 ? static_cast<double>(good) / ended : 0;
}

}  // namespace

double Percentile(std::span<const double> sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank = std::clamp(percent, 0.0, 100.0) / 100 * (sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (sorted[below + 1] - sorted[below]) * (rank - below);
}

Distribution Describe(std::vector<double> values) {
  Distribution d;
  if (values.empty()) return d;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  d.n = static_cast<int64_t>(values.size());
  d.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - d.mean) * (value - d.mean);
  d.stddev = std::sqrt(squares / n);
  d.min = values.front();
  d.max = values.back();
  d.p50 = Percentile(values, 50);
  d.p90 = Percentile(values, 90);
  d.p95 = Percentile(values, 95);
  d.p99 = Percentile(values, 99);
  return d;
}

RequestTimes TimesOf(const RequestRecord& record) {
  RequestTimes times;
  if (record.sent_ns != 0) times.queue_ms = SendLagMs(record);
  if (!Completed(record) || !HasContent(record)) return times;
  times.ttft_ms = Millis(record.first_ns - record.scheduled_ns);
  times.e2el_ms = Millis(record.last_ns - record.scheduled_ns);
  if (record.output_tokens >= 2 && record.choices == 1) {
    times.tpot_ms = Millis(record.last_ns - record.first_ns) / (record.output_tokens - 1);
  }
  return times;
}

bool CountsTokens(const RequestRecord& record) {
  if (record.chunk_tokens.empty() || record.chunk_tokens.size() != record.chunk_ns.size()) {
    return false;
  }
  int64_t sum = 0;
  for (int32_t tokens : record.chunk_tokens) {
    if (tokens < 0) return false;
    sum += tokens;
  }
  return sum == record.output_tokens;
}

bool GapsPerToken(std::span<const RequestRecord> records) {
  int64_t tokens = 0;
  bool any = false;
  for (const RequestRecord& record : records) {
    if (!Completed(record) || record.chunk_ns.size() < 2) continue;
    if (!CountsTokens(record)) return false;
    tokens += record.output_tokens;
    any = true;
  }
  return any && tokens <= kMostTokenGaps;
}

void AppendGaps(const RequestRecord& record, bool per_token, std::vector<double>* gaps_ms) {
  if (record.choices > 1) return;
  if (static_cast<int64_t>(gaps_ms->size()) + record.output_tokens > kMostTokenGaps) {
    per_token = false;
  }
  int64_t since = record.chunk_ns.empty() ? 0 : record.chunk_ns.front();
  for (size_t i = 1; i < record.chunk_ns.size(); ++i) {
    const int32_t tokens = per_token ? record.chunk_tokens[i] : 1;
    if (tokens == 0) continue;  // text without a token of its own: its time is the next chunk's
    gaps_ms->insert(gaps_ms->end(), tokens, Millis(record.chunk_ns[i] - since) / tokens);
    since = record.chunk_ns[i];
  }
}

bool KeepsPromises(const RequestRecord& record, std::span<const Promise> promises) {
  if (!Completed(record) || !HasContent(record)) return false;
  const RequestTimes times = TimesOf(record);
  for (const Promise& promise : promises) {
    double value = 0;
    switch (promise.what) {
      case Promise::What::kTtft:
        value = times.ttft_ms;
        break;
      case Promise::What::kTpot:
        value = times.tpot_ms;
        break;
      case Promise::What::kE2el:
        value = times.e2el_ms;
        break;
      case Promise::What::kItl:
        for (size_t i = 1; i < record.chunk_ns.size(); ++i) {
          value = std::max(value, Millis(record.chunk_ns[i] - record.chunk_ns[i - 1]));
        }
        break;
    }
    if (value > promise.most_ms) return false;
  }
  return true;
}

std::string_view Name(Outcome outcome) {
  constexpr std::string_view kNames[] = {"completed", "refused", "connection", "cut",
                                         "garbage",   "timeout", "not run"};
  return kNames[static_cast<size_t>(outcome)];
}

std::string_view Name(Promise::What promise) {
  constexpr std::string_view kNames[] = {"ttft", "tpot", "itl", "e2el"};
  return kNames[static_cast<size_t>(promise)];
}

Figures ComputeFigures(std::span<const RequestRecord> records, std::span<const Promise> promises) {
  Figures f;
  f.requests = static_cast<int64_t>(records.size());
  for (const RequestRecord& record : records) CountOutcome(record, &f);
  f.duration_s = DurationSeconds(records);
  f.itl_per_token = GapsPerToken(records);
  FillThroughput(&f);
  FillGoodput(records, promises, &f);
  const std::vector<TokenEvent> events = TokenEvents(records);
  FillSteadyState(records, events, &f);
  FillPeakSecond(records, events, &f);
  Samples s = Collect(records, &f);
  if (f.duration_s > 0) {
    f.mean_concurrency = static_cast<double>(s.under_way_ns) / 1e9 / f.duration_s;
  }
  f.ttft_ms = Describe(std::move(s.ttft));
  f.tpot_ms = Describe(std::move(s.tpot));
  f.itl_ms = Describe(std::move(s.itl));
  f.e2el_ms = Describe(std::move(s.e2el));
  f.queue_ms = Describe(std::move(s.queue));
  f.server_queue_ms = Describe(std::move(s.server_queue));
  f.send_lag_ms = Describe(std::move(s.lag));
  return f;
}

}  // namespace vivace::load
