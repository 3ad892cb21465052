#include <fmt/format.h>

#include "base/units.h"
#include "bench/machine_limits.h"
#include "bench/report.h"
#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/flags.h"

namespace vivace::cli {
namespace {

struct BenchLimitsOptions {
  bench::LimitOptions limits;
  bool json = false;
};

constexpr int64_t kMostThreads = 1'024;
constexpr int64_t kMostBytes = int64_t{1} << 40;

Status StoreThreads(const std::string& text, int* to) {
  VIVACE_ASSIGN(const int64_t threads, ParseCount(text, "threads"));
  if (threads < 1 || threads > kMostThreads) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", "threads",
                "--threads is {}; give a value from 1 to {}", threads, kMostThreads);
  }
  *to = static_cast<int>(threads);
  return {};
}

Status StoreWorkingSet(const std::string& text, std::vector<size_t>* to) {
  VIVACE_ASSIGN(const int64_t bytes, ParseBytes(text, "working-set"));
  if (bytes < 1 || bytes > kMostBytes) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", "working-set",
                "--working-set is '{}'; give a size such as 92MB", text);
  }
  to->push_back(static_cast<size_t>(bytes));
  return {};
}

Command BenchLimitsCommand(BenchLimitsOptions* options) {
  return {
      .name = "bench limits",
      .positional = "",
      .summary = "Measures what this machine can do, in this process, all threads at once.",
      .details =
          "Read bandwidth by working set, multiply-adds a second of every instruction the "
          "processor has, the clock\nand the cost of a fork-join. Takes a few seconds; let the "
          "machine be idle. Nothing is stored.",
      .flags = {
          {"threads", "N", "usable CPUs", "threads of the measurement, beside one alone",
           [options](const std::string& text) {
             return StoreThreads(text, &options->limits.threads);
           }},
          {"working-set", "BYTES", "", "another size to read, beside the caches' and memory's",
           [options](const std::string& text) {
             return StoreWorkingSet(text, &options->limits.working_sets);
           }},
          {"json", "", "off", "one JSON object instead of a table", StoreSwitch(&options->json)}}};
}

}  // namespace

int BenchLimits(std::span<const std::string> args) {
  BenchLimitsOptions options;
  const auto words =
      ParseWords(BenchLimitsCommand(&options), args, {0, 0, "only the machine is measured"});
  if (!words) return words.error();
  const auto limits = bench::MeasureLimits(options.limits);
  if (!limits) return Refuse(limits.error());
  fmt::print("{}{}", options.json ? bench::Json(*limits) : bench::Text(*limits),
             options.json ? "\n" : "");
  return 0;
}

}  // namespace vivace::cli
