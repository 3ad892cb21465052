// Records to figures: pure arithmetic, one definition each, said in every report (Definitions).
//
//   TTFT  first event with content - scheduled
//   E2E   last event with content - scheduled
//   TPOT  (last - first) / (output tokens - 1); none where fewer than 2 tokens came
//   ITL   gaps between events with content, over all requests; per token where the server counts
//   tokens
//         as it streams, per chunk otherwise, and named so
//   queueing  sent - scheduled (the client's), and the server's own where it tells
//
// Only completed requests are in latencies. `scheduled` is when the plan wanted the request sent
// (open loop), or when its place was free (closed loop): a late client makes figures worse, never
// better.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/record.h"

namespace vivace::load {

struct Distribution {
  int64_t n = 0;
  double mean = 0, stddev = 0, min = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

// `values` in any order. Percentiles interpolate linearly between closest ranks (numpy's default).
Distribution Describe(std::vector<double> values);
double Percentile(std::span<const double> sorted, double percent);

struct Promise {  // of --goodput and --slo: what of a request must be at most so much
  enum class What : uint8_t { kTtft, kTpot, kItl, kE2el } what;
  double most_ms = 0;
};

struct Figures {
  int64_t requests = 0, completed = 0, failed = 0, not_run = 0;
  int64_t interrupted = 0;                  // of those not run, sent and not waited for
  std::map<std::string, int64_t> failures;  // by reason
  double duration_s = 0;  // first scheduled to the last end; what was interrupted has none
  int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;  // of completed requests
  double request_throughput = 0, input_throughput = 0, output_throughput = 0,
         total_throughput = 0;  // a second
  // While at least 9 of 10 places of the peak concurrency were taken, by later requests than the
  // first to take them; -1: never.
  double steady_output_throughput = -1;
  double steady_s = 0;             // how long that was, together
  double peak_second_tokens = -1;  // most output tokens in one of the run's seconds; -1: not known
  double goodput = -1;  // requests a second that keep every promise; -1: none was asked for
  double good_share = -1;
  double mean_concurrency = 0;  // sum of (last event - sent) / duration
  int32_t peak_concurrency = 0;
  Distribution ttft_ms, tpot_ms, itl_ms, e2el_ms, queue_ms, server_queue_ms, send_lag_ms;
  bool itl_per_token = false;  // otherwise per chunk
  double tokens_per_chunk = 0;
  int64_t wrong_lengths = 0;  // completed, and not of the output length that was asked for
};

Figures ComputeFigures(std::span<const RequestRecord> records, std::span<const Promise> promises);

// What of one request the figures are made of; a member is negative where it has none.
struct RequestTimes {
  double ttft_ms = -1, tpot_ms = -1, e2el_ms = -1, queue_ms = -1;
};
RequestTimes TimesOf(const RequestRecord& record);

// Appends the gaps of one completed request: per token (a chunk's gap shared evenly by its tokens)
// or per chunk.
// Beyond kMostTokenGaps in all it is per chunk: tokens are what a server or a file claims.
void AppendGaps(const RequestRecord& record, bool per_token, std::vector<double>* gaps_ms);

// Whether the gaps of all these requests are to be had per token: each counts its tokens, and there
// are no more than kMostTokenGaps.
inline constexpr int64_t kMostTokenGaps = 50'000'000;
bool GapsPerToken(std::span<const RequestRecord> records);

// Whether the record says of each chunk how many tokens it had, and these add up to its usage.
bool CountsTokens(const RequestRecord& record);

// Whether a completed request kept every promise. ITL is its largest gap between chunks; a request
// of one token has no TPOT and keeps a promise of it.
bool KeepsPromises(const RequestRecord& record, std::span<const Promise> promises);

std::string_view Name(Outcome outcome);        // "refused"
std::string_view Name(Promise::What promise);  // "ttft"

// One definition each, printed in every report.
struct Definition {
  std::string_view name, text;
};
std::span<const Definition> Definitions();

}  // namespace vivace::load
