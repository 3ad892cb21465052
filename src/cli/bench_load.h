// What `bench serve` and `bench max-rate` do alike: find the server's model and tokens, make
// workloads, run them with a progress line, end early on Ctrl-C, write reports.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_load_options.h"
#include "cli/signals.h"
#include "load/runner.h"
#include "load/slo.h"

namespace vivace::cli {

class LoadBench {
 public:
  // Blocks the signals first, so no other thread may have been started. Asks the server what it
  // has and sends the first request; what is wrong with either is the error.
  static Result<std::unique_ptr<LoadBench>> Open(const LoadOptions& options);

  struct Point {              // one run
    double rate = 0;          // requests a second; 0: as fast as the places allow
    int32_t concurrency = 0;  // 0: unlimited
    size_t num_prompts = 0;
    uint64_t number =
        0;  // of the command: runs differ, so that no prefix cache knows the next one's prompts
    std::string label;  // empty: by its load
    std::vector<load::Promise> promises;
    std::vector<load::Slo> slos;  // more promises; refused where no answer could keep them
  };
  // "interrupted" where a signal came before anything of it was sent.
  Result<load::RunResult> Run(const Point& point);

  bool interrupted() const { return stop_.load(); }

 private:
  explicit LoadBench(const LoadOptions& options) : options_(options) {}
  Status Connect();
  Status OpenCounter();
  void OnSignal();
  Result<load::Workload> MakeWorkload(const Point& point);
  Result<std::vector<double>> ArrivalsOf(const load::Workload& workload, const Point& point) const;

  LoadOptions options_;
  load::LoadSettings settings_;
  std::map<std::string, std::string> environment_;
  std::unique_ptr<load::TokenCounter> counter_;  // null: lengths are approximate
  std::atomic<bool> stop_{false};
  std::atomic<bool> measuring_{false};
  std::unique_ptr<SignalThread> signals_;  // last: it calls into the rest
};

// Fails where a file of a report could not be written, before anything is measured.
Status CheckReports(const ReportOptions& options);
// All files that were asked for; each is named on stderr. `search`: a JSON object of what was found
// by these runs, for the file that has them all; empty: none.
Status WriteReports(const ReportOptions& options, const std::vector<load::RunResult>& runs,
                    const std::string& search = "");

// 0; kExitRefused where a run is not valid; kExitInterrupted.
int ExitCodeOf(const std::vector<load::RunResult>& runs, bool interrupted);

}  // namespace vivace::cli
