#include "bench/report.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/units.h"

namespace vivace::bench {
namespace {

std::string_view Name(MacKind kind) { return MacKernels()[static_cast<size_t>(kind)].name; }

template <typename Items, typename Format>
std::string Array(const Items& items, Format format) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ",";
    out += format(item);
  }
  return out + "]";
}

}  // namespace

std::string Text(const MachineLimits& limits) {
  std::string out =
      fmt::format("{}, {} threads, clock {:.2f} GHz (before) {:.2f} GHz (after)\n", limits.cpu,
                  limits.threads, limits.clock_before / 1e9, limits.clock_after / 1e9);
  out += "\nread bandwidth, GB/s        best   median\n";
  for (const ReadLimit& read : limits.reads) {
    out += fmt::format("  {:>10}  {:>2} thread{} {:>9.1f} {:>8.1f}\n", FormatBytes(read.bytes),
                       read.threads, read.threads == 1 ? " " : "s", read.best / 1e9,
                       read.median / 1e9);
  }
  out += "\nmultiply-adds             GMAC/s   a cycle and thread\n";
  for (const MacLimit& mac : limits.macs) {
    out += fmt::format("  {:<16} {:>2} thread{} {:>6.0f} {:>8.1f}\n", Name(mac.kind), mac.threads,
                       mac.threads == 1 ? " " : "s", mac.rate / 1e9,
                       mac.rate / limits.clock_after / mac.threads);
  }
  out += fmt::format("\nempty loop of the pool: {:.2f} us awake, {:.1f} us asleep\n",
                     limits.barrier_ns / 1e3, limits.wake_ns / 1e3);
  if (limits.disturbed()) {
    out += fmt::format("the host took {:.1f} % of the time: these limits are too low\n",
                       limits.steal * 100);
  }
  return out;
}

std::string Text(const StepReport& report) {
  std::string out = fmt::format(
      "{}, {}, {} threads, {} of weights, {} cache\n\n"
      "case                       ms     tok/s   of limit   binds       kernels sampling  rest\n",
      report.model, report.isa, report.threads, FormatBytes(report.weight_bytes), report.kv_dtype);
  for (const StepFigures& f : report.figures) {
    out +=
        fmt::format("{:<18} {:>10.2f} {:>9.0f} {:>10.2f}   {:<10} {:>7.1f}% {:>7.1f}% {:>4.1f}%\n",
                    bench::Name(f.step), f.seconds * 1e3, f.tokens_per_second, f.fraction_of_limit,
                    bench::Name(f.limit.side), f.kernel_share * 100, f.sample_share * 100,
                    (1 - f.kernel_share - f.sample_share) * 100);
  }
  for (const std::string& line : report.left_out) out += fmt::format("left out: {}\n", line);
  return out;
}

std::string Json(const MachineLimits& limits) {
  return fmt::format(
      R"({{"cpu":{},"threads":{},"l2_bytes":{},"l3_bytes":{},"clock_hz_before":{:.0f},)"
      R"("clock_hz_after":{:.0f},"barrier_ns":{:.0f},"wake_ns":{:.0f},"steal":{:.4f},)"
      R"("reads":{},"macs":{}}})",
      JsonQuoted(limits.cpu), limits.threads, limits.l2_bytes, limits.l3_bytes, limits.clock_before,
      limits.clock_after, limits.barrier_ns, limits.wake_ns, limits.steal,
      Array(limits.reads,
            [](const ReadLimit& read) {
              return fmt::format(
                  R"({{"bytes":{},"threads":{},"bytes_per_second":{:.0f},"median":{:.0f}}})",
                  read.bytes, read.threads, read.best, read.median);
            }),
      Array(limits.macs, [](const MacLimit& mac) {
        return fmt::format(R"({{"kind":{},"threads":{},"macs_per_second":{:.0f}}})",
                           JsonQuoted(Name(mac.kind)), mac.threads, mac.rate);
      }));
}

std::string Json(const StepReport& report) {
  const auto figures = [](const StepFigures& f) {
    return fmt::format(
        R"({{"prompt":{},"batch":{},"context":{},"seconds":{:.6f},"fastest":{:.6f},)"
        R"("slowest":{:.6f},"tokens_per_second":{:.2f},"limit_seconds":{:.6f},"binds":{},)"
        R"("fraction_of_limit":{:.4f},"kernel_share":{:.4f},"sample_share":{:.4f}}})",
        f.step.prompt, f.step.batch, f.step.context, f.seconds, f.fastest, f.slowest,
        f.tokens_per_second, f.limit.seconds, JsonQuoted(bench::Name(f.limit.side)),
        f.fraction_of_limit, f.kernel_share, f.sample_share);
  };
  return fmt::format(
      R"({{"model":{},"isa":{},"kv_dtype":{},"threads":{},"weight_bytes":{},"steps":{},)"
      R"("left_out":{},"limits":{}}})",
      JsonQuoted(report.model), JsonQuoted(report.isa), JsonQuoted(report.kv_dtype), report.threads,
      report.weight_bytes, Array(report.figures, figures), Array(report.left_out, JsonQuoted),
      Json(report.limits));
}

}  // namespace vivace::bench
