#include <fmt/format.h>

#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/verbs.h"

namespace vivace::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"serve", BenchServe, "latency, throughput and goodput of any server that speaks OpenAI's API"},
    {"max-rate", BenchMaxRate, "the highest rate at which a server keeps its promises"},
    {"report", BenchReport, "tables and an HTML page again, from results of `bench serve`"},
    {"compare", BenchCompare, "reports of `bench serve` side by side, with intervals and verdicts"},
    {"simulate", BenchSimulate, "a server without a model, with given times and faults"},
    {"limits", BenchLimits, "what this machine can do: clock, bandwidth, multiply-adds, barriers"},
    {"steps", BenchSteps, "prompts and decoding steps of a model, as fractions of those limits"},
    {"throughput", BenchThroughput, "a dataset computed in process, all of it at once"},
    {"latency", BenchLatency, "one batch of requests in process, again and again"},
};

void PrintBenchHelp(FILE* out) {
  fmt::print(out,
             "usage: vivace bench COMMAND [ARGUMENTS]\n\n"
             "Measures servers over HTTP; this machine, and a model on it, in this process.\n\n");
  PrintVerbs(kVerbs, out);
  fmt::print(out, "\nvivace bench COMMAND --help lists the flags of one.\n");
}

}  // namespace

int Bench(std::span<const std::string> args) {
  if (args.empty()) {
    PrintBenchHelp(stderr);
    return kExitUsage;
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    PrintBenchHelp(stdout);
    return 0;
  }
  return RunVerb("vivace bench", kVerbs, args);
}

}  // namespace vivace::cli
