#include "load/sim/sim_options.h"

#include <initializer_list>
#include <utility>

#include "base/limits.h"

namespace vivace::load {

Status CheckSim(const SimOptions& o) {
  const std::pair<const char*, double> kTimes[] = {{"ttft-ms", o.ttft_ms},
                                                   {"prefill-ms-per-token", o.prefill_ms_per_token},
                                                   {"itl-ms", o.itl_ms},
                                                   {"itl-ms-per-running", o.itl_ms_per_running},
                                                   {"stall-ms", o.faults.stall_ms}};
  for (const auto& [name, ms] : kTimes) {
    if (ms >= 0 && ms <= limits::kMaxLoadSeconds * 1e3) continue;
    return Fail(ErrorCode::kInvalidArgument, "bad_value", name,
                "--{} is {}; give milliseconds from 0 on", name, ms);
  }
  if (!(o.slow_start_s >= 0 && o.slow_start_s <= limits::kMaxLoadSeconds)) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "slow-start-sec",
                "--slow-start-sec is {}; give seconds from 0 on", o.slow_start_s);
  }
  const std::pair<const char*, int32_t> kCounts[] = {{"queue", o.max_running},
                                                     {"error-every", o.faults.error_every},
                                                     {"cut-every", o.faults.cut_every},
                                                     {"garbage-every", o.faults.garbage_every},
                                                     {"stall-every", o.faults.stall_every},
                                                     {"endless-every", o.faults.endless_every}};
  for (const auto& [name, count] : kCounts) {
    if (count >= 0) continue;
    return Fail(ErrorCode::kInvalidArgument, "bad_value", name,
                "--{} is {}; give a number from 1 on, or 0 for none", name, count);
  }
  if (o.chunk_tokens < 1 || o.chunk_tokens > limits::kMaxSimTokens) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "chunk-tokens",
                "--chunk-tokens is {}; give 1 to {}", o.chunk_tokens, limits::kMaxSimTokens);
  }
  return {};
}

}  // namespace vivace::load
