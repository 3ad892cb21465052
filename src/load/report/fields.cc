#include "load/report/fields.h"

#include <fmt/format.h>

namespace vivace::load {
namespace {

const FigureField kFigureFields[] = {
    {"duration", &Figures::duration_s},
    {"num_requests", &Figures::requests},
    {"completed", &Figures::completed},
    {"failed", &Figures::failed},
    {"not_run", &Figures::not_run},
    {"interrupted", &Figures::interrupted},
    {"total_input_tokens", &Figures::input_tokens},
    {"total_output_tokens", &Figures::output_tokens},
    {"total_cached_tokens", &Figures::cached_tokens},
    {"request_throughput", &Figures::request_throughput},
    {"request_goodput", &Figures::goodput, true},
    {"good_share", &Figures::good_share, true},
    {"input_throughput", &Figures::input_throughput},
    {"output_throughput", &Figures::output_throughput},
    {"total_token_throughput", &Figures::total_throughput},
    {"steady_output_throughput", &Figures::steady_output_throughput, true},
    {"steady_duration", &Figures::steady_s},
    {"max_output_tokens_per_s", &Figures::peak_second_tokens, true},
    {"mean_concurrency", &Figures::mean_concurrency},
    {"max_concurrent_requests", &Figures::peak_concurrency},
    {"tokens_per_chunk", &Figures::tokens_per_chunk},
    {"itl_per_token", &Figures::itl_per_token},
    {"wrong_lengths", &Figures::wrong_lengths},
};

constexpr LatencyField kLatencyFields[] = {
    {"ttft", &Figures::ttft_ms},         {"tpot", &Figures::tpot_ms},
    {"itl", &Figures::itl_ms},           {"e2el", &Figures::e2el_ms},
    {"queue", &Figures::queue_ms},       {"server_queue", &Figures::server_queue_ms},
    {"send_lag", &Figures::send_lag_ms},
};

constexpr StatField kStatFields[] = {
    {"mean", &Distribution::mean}, {"median", &Distribution::p50}, {"std", &Distribution::stddev},
    {"p50", &Distribution::p50},   {"p90", &Distribution::p90},    {"p95", &Distribution::p95},
    {"p99", &Distribution::p99},   {"min", &Distribution::min},    {"max", &Distribution::max},
};

}  // namespace

std::span<const FigureField> FigureFields() { return kFigureFields; }
std::span<const LatencyField> LatencyFields() { return kLatencyFields; }
std::span<const StatField> StatFields() { return kStatFields; }

std::string StatName(const StatField& stat, const LatencyField& latency) {
  return fmt::format("{}_{}_ms", stat.name, latency.name);
}

}  // namespace vivace::load
