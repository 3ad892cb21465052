#include "cli/bench_load.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/clock.h"
#include "base/limits.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "load/chains.h"
#include "load/client/server_facts.h"
#include "load/client/server_tokens.h"
#include "load/report/report.h"
#include "load/validity.h"

namespace vivace::cli {
namespace {

namespace fs = std::filesystem;

// Each run has another seed, far from those that users give to commands beside this one.
constexpr uint64_t kSeedStep = 1'000'003;
constexpr useconds_t kPollUs = 250'000;

tl::unexpected<Error> Interrupted() {
  return Fail(ErrorCode::kUnavailable, "interrupted", "", "interrupted while prompts were made");
}

// Ends the making of prompts when a signal has come: a server may take a second for each.
class StoppableCounter final : public load::TokenCounter {
 public:
  StoppableCounter(load::TokenCounter* counter, const std::atomic<bool>* stop)
      : counter_(*counter), stop_(*stop) {}

  Result<std::vector<int32_t>> Encode(std::string_view text) override {
    if (stop_.load()) return Interrupted();
    return counter_.Encode(text);
  }
  Result<std::string> Decode(std::span<const int32_t> ids) override {
    if (stop_.load()) return Interrupted();
    return counter_.Decode(ids);
  }
  int32_t vocab_size() const override { return counter_.vocab_size(); }
  Result<int32_t> ChatOverhead() override { return counter_.ChatOverhead(); }

 private:
  load::TokenCounter& counter_;
  const std::atomic<bool>& stop_;
};

bool MayYetCome(const Error& error) {
  return error.reason == "no_answer" || error.reason == "not_ready";
}

std::string Details(const load::LiveFigures& live) {
  return fmt::format("  {} of {} done{}, {} running, {:.0f} tok/s, {:.0f} s",
                     live.completed + live.failed, live.total,
                     live.failed > 0 ? fmt::format(" ({} failed)", live.failed) : "", live.running,
                     live.output_per_s, live.elapsed_s);
}

// As vLLM puts it into a file's name.
std::string RateInName(const load::LoadPoint& load) {
  if (load.ramp != load::ArrivalOptions::Ramp::kNone) {
    return fmt::format("ramp-up-{}-{:g}qps-{:g}qps", load::Name(load.ramp), load.ramp_from,
                       load.ramp_to);
  }
  return load.request_rate > 0 ? fmt::format("{:g}qps", load.request_rate) : "infqps";
}

std::string FileName(const ReportOptions& options, const load::RunResult& run) {
  const auto seconds = static_cast<std::time_t>(run.started_unix_ms / 1'000);
  std::string model = fs::path(run.model).filename().string();
  std::string name =
      fmt::format("{}-{}{}-{}-{:%Y%m%d-%H%M%S}.json",
                  options.label.empty() ? "openai" : options.label, RateInName(run),
                  run.max_concurrency > 0 ? fmt::format("-concurrency{}", run.max_concurrency) : "",
                  model, fmt::gmtime(seconds));
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

bool SavesEachRun(const ReportOptions& options) {
  return options.save_result || options.save_detailed || !options.result_filename.empty();
}

// Of a single run's file. A second one of the name is -2: runs may begin within one second. A name
// that the user gave may replace a file of before.
fs::path ResultPath(const ReportOptions& options, const load::RunResult& run,
                    std::set<fs::path>* written) {
  const bool named = !options.result_filename.empty();
  const fs::path wanted =
      fs::path(options.result_dir) / (named ? options.result_filename : FileName(options, run));
  const auto taken = [&](const fs::path& path) {
    std::error_code ignored;
    return written->contains(path) || (!named && fs::exists(path, ignored));
  };
  fs::path path = wanted;
  for (int number = 2; taken(path); ++number) {
    path.replace_filename(
        fmt::format("{}-{}{}", wanted.stem().string(), number, wanted.extension().string()));
  }
  written->insert(path);
  return path;
}

Status WriteReport(const std::string& path, const std::string& text) {
  VIVACE_RETURN_IF_ERROR(WriteOutput(path, text));
  fmt::print(stderr, "wrote {}\n", path);
  return {};
}

}  // namespace

// ---- The server ----

// The first signal while something is measured ends that; otherwise there is nothing to keep.
void LoadBench::OnSignal() {
  const bool measuring = measuring_.load();
  if (measuring && !stop_.exchange(true)) return;
  if (!measuring) fmt::print(stderr, "\nvivace: interrupted before anything was measured\n");
  _exit(kExitInterrupted);
}

Result<std::unique_ptr<LoadBench>> LoadBench::Open(const LoadOptions& options) {
  BlockSignals();
  std::unique_ptr<LoadBench> bench(new LoadBench(options));
  bench->signals_ =
      std::make_unique<SignalThread>([self = bench.get()](int, int) { self->OnSignal(); });
  VIVACE_RETURN_IF_ERROR(bench->Connect());
  return bench;
}

Status LoadBench::Connect() {
  settings_.target = options_.target;
  settings_.body = options_.body;
  settings_.ready_timeout_s = options_.ready_timeout_s;
  settings_.request_timeout_s = options_.request_timeout_s;
  settings_.stop = &stop_;
  load::Fetcher fetch(options_.target);
  if (settings_.body.model.empty()) {
    const int64_t give_up_ns =
        SteadyNanos() + static_cast<int64_t>(options_.ready_timeout_s * kNanosPerSecond);
    auto model = load::OnlyModel(&fetch);
    while (!model && MayYetCome(model.error()) && SteadyNanos() < give_up_ns) {
      usleep(kPollUs);
      model = load::OnlyModel(&fetch);
    }
    if (!model) return tl::unexpected<Error>(std::move(model.error()));
    settings_.body.model = std::move(*model);
  }
  load::PlannedRequest short_one;
  short_one.prompt = "Hello";
  short_one.output_tokens = 4;
  VIVACE_ASSIGN(settings_.body, load::Prepare(settings_, short_one));
  environment_ = load::ClientFacts();
  environment_.merge(load::ServerFacts(&fetch, settings_.body.model));
  if (!options_.report.label.empty()) environment_["label"] = options_.report.label;
  for (const auto& [key, value] : options_.report.metadata) environment_[key] = value;
  return OpenCounter();
}

Status LoadBench::OpenCounter() {
  if (!options_.tokenizer.empty()) {
    VIVACE_ASSIGN(counter_, load::MakeFileCounter(options_.tokenizer));
    if (!options_.dataset.chat) return {};
    VIVACE_ASSIGN(const int32_t around, counter_->ChatOverhead());
    if (around < 0) {
      fmt::print(
          stderr,
          "note: lengths of prompts are without the chat template, because {} has none: give "
          "the model's file or folder\n",
          options_.tokenizer);
    }
    return {};
  }
  auto counter = load::MakeServerCounter(options_.target, settings_.body.model);
  if (counter) {
    counter_ = std::move(*counter);
  } else {
    fmt::print(stderr,
               "note: lengths of prompts are approximate, because the server does not say what its "
               "tokens are ({}); give its --tokenizer\n",
               counter.error().message);
  }
  return {};
}

// ---- A run ----

Result<std::vector<double>> LoadBench::ArrivalsOf(const load::Workload& workload,
                                                  const Point& point) const {
  const bool ramps = options_.arrivals.ramp != load::ArrivalOptions::Ramp::kNone;
  if (point.rate <= 0 && !ramps) return std::vector<double>();
  load::ArrivalOptions arrivals = options_.arrivals;
  arrivals.rate = point.rate;
  arrivals.seed += kSeedStep * point.number;
  std::vector<double> at = load::Arrivals(arrivals, load::ChainsOf(workload).size());
  if (!at.empty() && !(at.back() <= limits::kMaxLoadSeconds)) {
    return Fail(
        ErrorCode::kInvalidArgument, "bad_value", "request-rate",
        "{} requests take {:.3g} days at this rate, and a run takes {:g} at most: raise the "
        "rate or lower --num-prompts",
        at.size(), at.back() / 86'400, limits::kMaxLoadSeconds / 86'400);
  }
  return at;
}

Result<load::Workload> LoadBench::MakeWorkload(const Point& point) {
  load::DatasetOptions dataset = options_.dataset;
  dataset.num_prompts = point.num_prompts;
  dataset.seed += kSeedStep * point.number;
  if (counter_ == nullptr) return load::MakeWorkload(dataset, nullptr);
  StoppableCounter counter(counter_.get(), &stop_);
  return load::MakeWorkload(dataset, &counter);
}

Result<load::RunResult> LoadBench::Run(const Point& point) {
  VIVACE_ASSIGN(const load::Workload workload, MakeWorkload(point));
  VIVACE_RETURN_IF_ERROR(load::CheckSlos(point.slos, workload, "slo"));
  load::RunOptions run;
  VIVACE_ASSIGN(run.arrivals_s, ArrivalsOf(workload, point));
  run.max_concurrency = point.concurrency;
  run.request_rate = point.rate;
  run.burstiness = options_.arrivals.burstiness;
  run.ramp = options_.arrivals.ramp;
  run.ramp_from = options_.arrivals.ramp_from;
  run.ramp_to = options_.arrivals.ramp_to;
  run.own_times = run.arrivals_s.empty() && load::HaveOwnTimes(load::ChainsOf(workload));
  run.label = point.label.empty() ? load::LabelOf(run) : point.label;
  run.num_warmups = options_.num_warmups;
  run.drain_timeout_s = options_.drain_timeout_s;
  run.sample_server = options_.server_metrics;
  run.promises = point.promises;
  for (const load::Slo& slo : point.slos) run.promises.push_back(slo.promise);
  run.environment = environment_;
  Progress progress(run.label);
  if (options_.progress) {
    run.on_progress = [&progress](const load::LiveFigures& live) {
      progress.Update(static_cast<uint64_t>(live.completed + live.failed),
                      static_cast<uint64_t>(live.total), Details(live));
    };
  }
  measuring_ = true;
  auto result = load::Run(settings_, run, workload);
  progress.Clear();
  return result;
}

// ---- Reports ----

Status CheckReports(const ReportOptions& options) {
  std::vector<std::string> paths = {options.json, options.csv, options.html};
  if (SavesEachRun(options)) {
    std::error_code ignored;
    if (!options.result_dir.empty()) fs::create_directories(options.result_dir, ignored);
    const fs::path folder = options.result_dir;
    if (options.result_filename.empty()) {  // each is named for its run, and replaces nothing
      VIVACE_RETURN_IF_ERROR(CheckOutputPath((folder / "result.json").string()));
    } else {
      paths.push_back((folder / options.result_filename).string());
    }
  }
  return CheckOutputPaths(paths);
}

Status WriteReports(const ReportOptions& options, const std::vector<load::RunResult>& runs,
                    const std::string& search) {
  if (runs.empty()) return {};
  if (!options.json.empty()) {
    const std::string text = load::ReportJson(runs, /*detailed=*/true, search);
    VIVACE_RETURN_IF_ERROR(WriteReport(options.json, text + "\n"));
    if (text.size() > limits::kMaxReportBytes) {
      fmt::print(
          stderr,
          "note: {} has {:.0f} MB, and `bench report` and `bench compare` read {:.0f}: split "
          "the run, or use --save-result without --save-detailed\n",
          options.json, static_cast<double>(text.size()) / 1e6,
          static_cast<double>(limits::kMaxReportBytes) / 1e6);
    }
  }
  if (!options.csv.empty()) VIVACE_RETURN_IF_ERROR(WriteReport(options.csv, load::ReportCsv(runs)));
  if (!options.html.empty())
    VIVACE_RETURN_IF_ERROR(WriteReport(options.html, load::ReportHtml(runs)));
  if (!SavesEachRun(options)) return {};
  std::set<fs::path> written;
  for (const load::RunResult& run : runs) {
    const std::string path = ResultPath(options, run, &written).string();
    VIVACE_RETURN_IF_ERROR(
        WriteReport(path, load::ReportJson({run}, options.save_detailed) + "\n"));
  }
  return {};
}

int ExitCodeOf(const std::vector<load::RunResult>& runs, bool interrupted) {
  if (interrupted) return kExitInterrupted;
  for (const load::RunResult& run : runs) {
    if (!load::InvalidBecause(run).empty()) return kExitRefused;
  }
  return 0;
}

}  // namespace vivace::cli
