#include <fmt/format.h>

#include "base/limits.h"
#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/value_flags.h"
#include "load/sim/sim_server.h"

namespace vivace::cli {
namespace {

constexpr int32_t kMostEvery = limits::kMaxLoadRequests;
constexpr double kMostMs = limits::kMaxLoadSeconds * 1e3;

struct BenchSimulateOptions {
  load::SimOptions sim;
  int32_t port = 8000;
};

std::vector<Flag> TimeFlags(load::SimOptions* o) {
  return {NumberFlag("ttft-ms", "MS", "to the first token of a request that runs", &o->ttft_ms, 0,
                     kMostMs),
          NumberFlag("prefill-ms-per-token", "MS", "and for each token of its prompt",
                     &o->prefill_ms_per_token, 0, kMostMs),
          NumberFlag("itl-ms", "MS", "between its tokens", &o->itl_ms, 0, kMostMs),
          NumberFlag("itl-ms-per-running", "MS", "and for each other request that runs",
                     &o->itl_ms_per_running, 0, kMostMs),
          CountFlag("queue", "requests that run at once, the others wait; 0: all", &o->max_running,
                    0, limits::kMaxLoadConcurrency),
          CountFlag("chunk-tokens", "tokens an event, but the first", &o->chunk_tokens, 1,
                    limits::kMaxSimTokens),
          NumberFlag("slow-start-sec", "S", "answer 503 for so long", &o->slow_start_s, 0,
                     limits::kMaxLoadSeconds),
          {"continuous-usage", "", "on", "take stream_options.continuous_usage_stats",
           StoreSwitch(&o->continuous_usage)},
          {"null-server", "", "off", "answer whole at once: measures the client",
           StoreSwitch(&o->null_server)}};
}

std::vector<Flag> FaultFlags(load::SimFaults* f) {
  return {
      CountFlag("error-every", "every n-th request is answered with 500", &f->error_every, 0,
                kMostEvery),
      CountFlag("cut-every", "is cut in the middle", &f->cut_every, 0, kMostEvery),
      CountFlag("garbage-every", "turns into what is no JSON", &f->garbage_every, 0, kMostEvery),
      CountFlag("stall-every", "pauses in the middle", &f->stall_every, 0, kMostEvery),
      NumberFlag("stall-ms", "MS", "for so long", &f->stall_ms, 0, kMostMs),
      CountFlag("endless-every", "never ends", &f->endless_every, 0, kMostEvery)};
}

Command BenchSimulateCommand(BenchSimulateOptions* options) {
  Command command = {
      .name = "bench simulate",
      .positional = "",
      .summary = "Serves OpenAI's API without a model, at given times and with given faults.",
      .details =
          "A token is a word. GET /sim/truth says what was really done with each request, POST "
          "/sim/reset forgets it.\n\n"
          "Examples:\n"
          "  vivace bench simulate --ttft-ms 80 --itl-ms 20 --queue 16\n"
          "  vivace bench simulate --prefill-ms-per-token 0.2 --itl-ms 15 --itl-ms-per-running 0.5 "
          "--error-every 50",
      .flags = {}};
  load::SimOptions* sim = &options->sim;
  command.flags = {{"host", "ADDRESS", sim->host, "what to listen on", StoreText(&sim->host)},
                   CountFlag("port", "0 is any that is free", &options->port, 0, 65'535),
                   {"uds", "PATH", "", "a Unix socket instead", StoreText(&sim->uds)},
                   {"model",
                    "NAME",
                    sim->model,
                    "the model's name",
                    StoreText(&sim->model),
                    {"served-model-name"}}};
  for (Flag& flag : TimeFlags(sim)) command.flags.push_back(std::move(flag));
  for (Flag& flag : FaultFlags(&sim->faults)) command.flags.push_back(std::move(flag));
  return command;
}

}  // namespace

int BenchSimulate(std::span<const std::string> args) {
  BenchSimulateOptions options;
  const auto words = ParseWords(BenchSimulateCommand(&options), args,
                                {0, 0, "what is simulated is said by flags"});
  if (!words) return words.error();
  options.sim.port = static_cast<uint16_t>(options.port);
  BlockSignals();
  auto server = load::SimServer::Listen(options.sim);
  if (!server) return Refuse(server.error());
  const SignalThread signals([&server](int, int) { (*server)->Stop(); });
  const bool v6 = options.sim.host.find(':') != std::string::npos;
  fmt::print("Simulated server is ready on {}  (model {})\n",
             options.sim.uds.empty()
                 ? fmt::format("http://{}{}{}:{}", v6 ? "[" : "", options.sim.host, v6 ? "]" : "",
                               (*server)->port())
                 : "the Unix socket " + options.sim.uds,
             options.sim.model);
  std::fflush(stdout);
  (*server)->Run();
  return 0;
}

}  // namespace vivace::cli
