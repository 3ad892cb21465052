#include <fmt/format.h>

#include <cstdlib>

#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "load/compare.h"
#include "load/report/report.h"

namespace vivace::cli {
namespace {

struct BenchCompareOptions {
  load::CompareOptions compare;
  bool json = false;
};

Flag Percent(std::string name, std::string help, double low, double high, double* to) {
  auto store = [name, low, high, to](const std::string& text) -> Status {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= low && value <= high)) {
      return BadValue(name, text, fmt::format("a number from {:g} to {:g}, in percent", low, high));
    }
    *to = value / 100;
    return {};
  };
  return {std::move(name), "PERCENT", fmt::format("{:g}", *to * 100), std::move(help),
          std::move(store)};
}

Command BenchCompareCommand(BenchCompareOptions* options) {
  load::CompareOptions& compare = options->compare;
  Command command = {
      .name = "bench compare",
      .positional = "A.json B.json [C.json ...]",
      .summary = "Compares reports of `bench serve` with the first of them.",
      .details =
          "Every figure gets its change, an interval (bootstrap over requests, paired where both "
          "runs sent the same;\nrates over slices of time) and a verdict: better, worse, or no "
          "difference. Intervals need reports made\nwith --save-detailed. Result files of "
          "`vllm bench serve` are read as well.\n\n"
          "Examples:\n  vivace bench compare before.json after.json\n"
          "  vivace bench compare a.json b.json c.json --json",
      .flags = {}};
  command.flags = {
      Percent("confidence", "of the intervals", 50, 99.9, &compare.confidence),
      Percent("least", "change below which there is no difference", 0, 50, &compare.least),
      {"seed", "N", "0", "of the resampling",
       [&compare](const std::string& text) -> Status {
         char* end = nullptr;
         compare.seed = std::strtoull(text.c_str(), &end, 10);
         if (text.empty() || *end != '\0' || text[0] == '-') {
           return BadValue("seed", text, "a whole number");
         }
         return {};
       }},
      {"json", "", "off", "one JSON object instead of tables", StoreSwitch(&options->json)}};
  return command;
}

}  // namespace

int BenchCompare(std::span<const std::string> args) {
  BenchCompareOptions options;
  const auto words =
      ParseWords(BenchCompareCommand(&options), args, {2, kAnyWords, "give two or more reports"});
  if (!words) return words.error();
  std::vector<std::vector<load::RunResult>> reports;
  for (const std::string& path : *words) {
    auto report = load::ReadReport(path);
    if (!report) return Refuse(report.error());
    reports.push_back(std::move(*report));
  }
  const auto comparison = load::Compare(*words, reports, options.compare);
  if (!comparison) return Refuse(comparison.error());
  fmt::print("{}", options.json ? load::ComparisonJson(*comparison) + "\n"
                                : load::ComparisonText(*comparison));
  return 0;
}

}  // namespace vivace::cli
