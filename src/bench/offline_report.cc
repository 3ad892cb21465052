#include "bench/offline_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/json_text.h"
#include "bench/roofline.h"

namespace vivace::bench {
namespace {

constexpr int kPercentiles[] = {10, 25, 50, 75, 90, 99};  // vLLM's

std::string LimitText(const std::optional<OfflineLimit>& limit) {
  if (!limit) return "";
  return fmt::format(
      "Of the machine's limit: {:.2f} (the steps took {:.2f} s; reading and multiplying alone take "
      "{:.2f} s)\n",
      limit->fraction(), limit->steps_s, limit->least_s);
}

std::string UseText(const EngineUse& use) {
  return fmt::format(
      "{} steps of {:.2f} ms (p99 {:.2f}), {:.1f} tokens each; {:.1f} answers at once (most {}); "
      "{} preemptions;\n{:.1f} % of prompt tokens from the prefix cache; kernels {:.1f} %, "
      "sampling "
      "{:.1f} %, the rest {:.1f} % of the steps\n",
      use.steps, use.mean_step_ms, use.p99_step_ms, use.mean_step_tokens, use.mean_batch,
      use.peak_batch, use.preemptions, use.prefix_hit_rate * 100, use.kernel_share * 100,
      use.sample_share * 100, (1 - use.kernel_share - use.sample_share) * 100);
}

std::string UseJson(const EngineUse& use) {
  return fmt::format(
      R"({{"steps":{},"mean_step_ms":{:.4f},"p99_step_ms":{:.4f},"mean_step_tokens":{:.2f},)"
      R"("mean_batch":{:.3f},"peak_batch":{},"mean_waiting":{:.3f},"preemptions":{},)"
      R"("prefix_hit_rate":{:.5f},"busy_share":{:.5f},"kernel_share":{:.5f},"sample_share":{:.5f}}})",
      use.steps, use.mean_step_ms, use.p99_step_ms, use.mean_step_tokens, use.mean_batch,
      use.peak_batch, use.mean_waiting, use.preemptions, use.prefix_hit_rate, use.busy_share,
      use.kernel_share, use.sample_share);
}

std::string LimitJson(const std::optional<OfflineLimit>& limit) {
  if (!limit) return "null";
  return fmt::format("{:.5f}", limit->fraction());
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string DistributionJson(const load::Distribution& d) {
  if (d.n == 0) return "null";
  return fmt::format(
      R"({{"n":{},"mean":{:.4f},"p50":{:.4f},"p90":{:.4f},"p99":{:.4f},"max":{:.4f}}})", d.n,
      d.mean, d.p50, d.p90, d.p99, d.max);
}

}  // namespace

Status CheckFraction(const OfflineLimit& limit) {
  if (limit.fraction() <= kMostFraction) return {};
  return Fail(
      ErrorCode::kInternal, "limit_exceeded", "",
      "the steps took {:.2f} of the time the machine's limit allows: the limit was measured "
      "wrongly, so the fraction does not hold; let the machine be idle and run it again, or "
      "give --no-limits",
      1 / limit.fraction());
}

std::string Text(const ThroughputReport& report) {
  const load::Figures& f = report.figures;
  const double seconds = report.elapsed_s > 0 ? report.elapsed_s : 1;
  const auto rate = [&](int64_t count) { return static_cast<double>(count) / seconds; };
  std::string out = fmt::format(
      "{}, {}, {} threads, {} cache, at most {} sequences and {} tokens a step\n{}: {} of {} "
      "requests completed in {:.2f} s\n",
      report.model, report.isa, report.threads, report.kv_dtype, report.max_num_seqs,
      report.max_num_batched_tokens, report.workload, f.completed, f.requests, report.elapsed_s);
  out += fmt::format(
      "Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n"
      "Total num prompt tokens:  {}\nTotal num output tokens:  {}\n",
      rate(f.completed), rate(f.input_tokens + f.output_tokens), rate(f.output_tokens),
      f.input_tokens, f.output_tokens);
  if (f.completed < f.requests) {
    out +=
        "What was computed of answers that did not complete is not in these figures, its time "
        "is.\n";
  }
  out += LimitText(report.limit);
  out += UseText(report.use);
  return out;
}

std::string Json(const ThroughputReport& report) {
  const load::Figures& f = report.figures;
  const double seconds = report.elapsed_s > 0 ? report.elapsed_s : 1;
  const auto rate = [&](int64_t count) { return static_cast<double>(count) / seconds; };
  return fmt::format(
      R"({{"elapsed_time":{:.6f},"num_requests":{},"total_num_tokens":{},)"
      R"("requests_per_second":{:.6f},"tokens_per_second":{:.6f},)"
      R"("output_tokens_per_second":{:.6f},"prompt_tokens":{},"output_tokens":{},"failed":{},)"
      R"("fraction_of_limit":{},"model":{},"isa":{},"threads":{},"kv_cache_dtype":{},)"
      R"("max_num_seqs":{},"max_num_batched_tokens":{},"workload":{},"ttft_ms":{},"tpot_ms":{},)"
      R"("itl_ms":{},"e2el_ms":{},"engine":{}}})",
      report.elapsed_s, f.completed, f.input_tokens + f.output_tokens, rate(f.completed),
      rate(f.input_tokens + f.output_tokens), rate(f.output_tokens), f.input_tokens,
      f.output_tokens, f.failed, LimitJson(report.limit), JsonQuoted(report.model),
      JsonQuoted(report.isa), report.threads, JsonQuoted(report.kv_dtype), report.max_num_seqs,
      report.max_num_batched_tokens, JsonQuoted(report.workload), DistributionJson(f.ttft_ms),
      DistributionJson(f.tpot_ms), DistributionJson(f.itl_ms), DistributionJson(f.e2el_ms),
      UseJson(report.use));
}

std::string Text(const LatencyReport& report) {
  std::vector<double> sorted = report.latencies;
  std::ranges::sort(sorted);
  std::string out = fmt::format("{}, {}, {} threads, {} cache: {} prompts of {}, answers of {}\n",
                                report.model, report.isa, report.threads, report.kv_dtype,
                                report.batch_size, report.input_len, report.output_len);
  out += fmt::format("Avg latency: {:.6f} seconds\n", Mean(sorted));
  for (const int p : kPercentiles)
    out += fmt::format("{}% percentile latency: {:.6f} seconds\n", p, load::Percentile(sorted, p));
  out += LimitText(report.limit);
  out += UseText(report.use);
  return out;
}

std::string Json(const LatencyReport& report) {
  std::vector<double> sorted = report.latencies;
  std::ranges::sort(sorted);
  std::vector<std::string> percentiles, latencies;
  for (const int p : kPercentiles)
    percentiles.push_back(fmt::format(R"("{}":{:.6f})", p, load::Percentile(sorted, p)));
  for (const double latency : report.latencies) latencies.push_back(fmt::format("{:.6f}", latency));
  return fmt::format(
      R"({{"avg_latency":{:.6f},"latencies":[{}],"percentiles":{{{}}},"fraction_of_limit":{},)"
      R"("batch_size":{},"input_len":{},"output_len":{},"model":{},"isa":{},"threads":{},)"
      R"("kv_cache_dtype":{},"engine":{}}})",
      Mean(sorted), fmt::join(latencies, ","), fmt::join(percentiles, ","), LimitJson(report.limit),
      report.batch_size, report.input_len, report.output_len, JsonQuoted(report.model),
      JsonQuoted(report.isa), report.threads, JsonQuoted(report.kv_dtype), UseJson(report.use));
}

}  // namespace vivace::bench
