#include <fmt/format.h>

#include <algorithm>

#include "bench/report.h"
#include "bench/steps.h"
#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_argument.h"
#include "cli/progress.h"
#include "cli/serve_options.h"

namespace vivace::cli {
namespace {

struct BenchStepsOptions {
  bench::StepOptions steps;
  bool json = false;
  HubOptions hub;
};

// The engine's flags that mean something without a server; the sizes follow from the cases.
constexpr std::string_view kEngineFlags[] = {"threads", "isa", "kv-cache-dtype",
                                             "max-num-batched-tokens"};

Flag Counts(std::string name, std::string help, std::vector<int32_t>* to) {
  auto store = [name, to](const std::string& text) -> Status {
    VIVACE_ASSIGN(*to, ParseCounts(text, name));
    return {};
  };
  return {std::move(name), "N,N,...", fmt::format("{}", fmt::join(*to, ",")), std::move(help),
          std::move(store)};
}

Command BenchStepsCommand(BenchStepsOptions* options) {
  Command command = {
      .name = "bench steps",
      .positional = "MODEL",
      .summary = "Times prompts and decoding steps in process, without scheduler or sockets.",
      .details =
          "Every figure is a median, beside the share of the least time this machine could take "
          "and which side of\nthe limit binds, bandwidth or compute. A share above 1.03 is an "
          "error of the measurement: exit 1.\n\n"
          "Examples:\n  vivace bench steps model.gguf\n"
          "  vivace bench steps model.gguf --prompt 512 --decode 1,8 --context 128 --json\n"
          "  vivace bench steps model.gguf --prompt none --decode 1 --context 4k",
      .flags = {}};
  bench::StepOptions& steps = options->steps;
  command.flags = {Counts("prompt", "prompt lengths, or none", &steps.prompts),
                   Counts("decode", "sequences decoded at once, or none", &steps.batches),
                   Counts("context", "tokens each of them has in the cache", &steps.contexts),
                   {"rounds", "N", fmt::to_string(steps.rounds), "measured rounds of each case",
                    [&steps](const std::string& text) -> Status {
                      VIVACE_ASSIGN(const std::vector<int32_t> rounds, ParseCounts(text, "rounds"));
                      if (rounds.size() != 1) {
                        return Fail(ErrorCode::kInvalidArgument, "bad_value", "rounds",
                                    "--rounds is '{}'; give one number", text);
                      }
                      steps.rounds = rounds[0];
                      return {};
                    }}};
  for (Flag& flag : EngineFlags(&steps.engine, kEngineFlags)) {
    command.flags.push_back(std::move(flag));
  }
  for (Flag& flag : HubFlags(&options->hub)) command.flags.push_back(std::move(flag));
  command.flags.push_back(
      {"json", "", "off", "one JSON object instead of a table", StoreSwitch(&options->json)});
  return command;
}

void PrintSteps(const BenchStepsOptions& options, const bench::StepReport& report) {
  if (options.json) {
    fmt::print("{}\n", bench::Json(report));
  } else {
    fmt::print("{}\n{}", bench::Text(report.limits), bench::Text(report));
  }
}

}  // namespace

int BenchSteps(std::span<const std::string> args) {
  BenchStepsOptions options;
  const auto words = ParseWords(BenchStepsCommand(&options), args, {1, 1, "give one model"});
  if (!words) return words.error();
  auto model = ResolveModel((*words)[0], options.hub);
  if (!model) return Refuse(model.error());
  options.steps.engine.model = std::move(model->path);
  Progress progress("measuring");
  const auto report = bench::RunStepBench(options.steps, [&](int done, int total) {
    progress.Update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  });
  progress.Clear();
  if (!report) return Refuse(report.error());
  PrintSteps(options, *report);
  const Status checked = bench::CheckFractions(*report);
  return checked ? 0 : Refuse(checked.error());
}

}  // namespace vivace::cli
