#include "hub/pull.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <span>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_argument.h"
#include "cli/pull_progress.h"
#include "cli/signals.h"
#include "hub/file_choice.h"

namespace vivace::cli {
namespace {

struct PullOptions {
  HubOptions hub;
  int64_t timeout_s = 30;
};

Command PullCommand(PullOptions* options) {
  Command command = {
      .name = "pull",
      .positional = "ORG/NAME[:FILE]",
      .summary = "Gets a model from the hub into Hugging Face's cache, and prints its path.",
      .details = fmt::format(
          "Safetensors with what belongs to them, if the repository has them; else a GGUF: {}, or "
          "the next\nof {} that is there. FILE is a file's name, or what\ntells a GGUF's, such as "
          "Q8_0. What was cut goes on where it ended.\n\nEnvironment: HF_HOME, HF_HUB_CACHE, "
          "HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE; https_proxy and its kin.\n\nExamples:\n"
          "  vivace pull org/name\n"
          "  vivace pull org/name-GGUF:Q8_0\n"
          "  vivace pull org/name --revision v1.0",
          hub::kGgufPreference[0], fmt::join(std::span(hub::kGgufPreference).subspan(1), ", ")),
      .flags = HubFlags(&options->hub)};
  command.flags.push_back({"timeout", "SECONDS", fmt::to_string(options->timeout_s),
                           "a connection that gives nothing for so long is given up",
                           [options](const std::string& text) -> Status {
                             VIVACE_ASSIGN(options->timeout_s, ParseCount(text, "timeout"));
                             if (options->timeout_s >= 1 && options->timeout_s <= 3'600) return {};
                             return Fail(ErrorCode::kInvalidArgument, "flag_range", "timeout",
                                         "--timeout is {}; give 1 to 3600 seconds", text);
                           }});
  return command;
}

}  // namespace

int Pull(std::span<const std::string> args) {
  PullOptions options;
  const auto name = ParseModelWord(PullCommand(&options), args);
  if (!name) return name.error();
  options.hub.config.timeout_s = static_cast<int>(options.timeout_s);
  BlockSignals();
  std::atomic<bool> stopped = false;
  const SignalThread signals([&stopped](int, int count) {
    stopped = true;
    if (count > 1) _exit(kExitInterrupted);
  });
  PullProgress progress(name->text());
  const auto pulled =
      hub::Pull(options.hub.config, {.name = *name, .revision = options.hub.revision},
                {.on_progress = progress.Hook(), .stop = [&stopped] { return stopped.load(); }});
  progress.Clear();
  if (!pulled && pulled.error().reason == "interrupted") {
    fmt::print(stderr, "vivace: stopped; the next pull goes on from here\n");
    return kExitInterrupted;
  }
  if (!pulled) return Refuse(pulled.error());
  fmt::print(stderr, "{}: {}, {} of them new\n", name->text(), FormatBytes(pulled->bytes),
             FormatBytes(pulled->downloaded));
  fmt::print("{}\n", pulled->path);
  return 0;
}

}  // namespace vivace::cli
