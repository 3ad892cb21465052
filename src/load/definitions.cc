#include "load/figures.h"

namespace vivace::load {
namespace {

constexpr Definition kDefinitions[] = {
    {"scheduled",
     "when the plan wanted a request sent (open loop), or when its place was free (closed loop); "
     "all latencies count from then, so a late client makes them worse, never better"},
    {"TTFT", "time to first token: first event with content - scheduled"},
    {"E2EL", "end-to-end latency: last event with content - scheduled"},
    {"TPOT",
     "time per output token of a request: (last - first event with content) / (output tokens - 1); "
     "none with fewer than 2 tokens"},
    {"ITL",
     "inter-token latency: gaps between events with content, of all requests together; per token "
     "(a gap is shared evenly by the tokens that end it) where the server counts them as it "
     "streams, per chunk otherwise"},
    {"queueing",
     "sent - scheduled on the client's side; the server's own where it says so (Server-Timing)"},
    {"completed",
     "streams that ended as the protocol says; failures are in no latency and no token count, and "
     "more than 1 % of them make a run invalid"},
    {"duration",
     "from the first request scheduled to the last one ended, failures included; what was "
     "interrupted is left out"},
    {"throughput",
     "requests, input tokens and output tokens of completed requests / duration; tokens by the "
     "server's usage, never by chunks"},
    {"steady output throughput",
     "output tokens a second while at least 9 of 10 of the peak's requests were under way, from "
     "the end of the first that were: without the run's start and its tail; none where no more "
     "than those were sent"},
    {"peak output tokens of a second",
     "the most output tokens of completed requests in any one of the run's whole seconds"},
    {"goodput",
     "completed requests a second that kept every promise; a promise of ITL holds for the largest "
     "gap of a request; a failed request keeps none"},
    {"concurrency",
     "mean: sum of (last event with content - sent) / duration; peak: most requests under way at "
     "once"},
    {"p50, p90, p99",
     "percentiles, linear between closest ranks (numpy's default); std: of the "
     "values themselves (divided by n)"},
};

}  // namespace

std::span<const Definition> Definitions() { return kDefinitions; }

}  // namespace vivace::load
