// What a run of `vivace tune` keeps in its journal (journal.h): the header that must be the same,
// the calibrations, the plan and the trials, each with the time that all sessions had spent by
// then; and what an earlier session left. One thread.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/step_samples.h"
#include "tune/calibration.h"
#include "tune/journal.h"
#include "tune/session.h"
#include "tune/traffic.h"
#include "tune/trial.h"

namespace vivace::tune {

// What was decided before anything was measured.
struct RunPlan {
  size_t requests = 0;   // of a trial
  std::string digest;    // of them (DigestOf)
  size_t available = 0;  // bytes (Session::available)
};

class RunJournal {
 public:
  // In options.out, which is made. `sample`: the first requests of the dataset, of which the header
  // has a digest. The session's budget learns what was spent before.
  static Result<RunJournal> Open(Session* session, const Traffic& sample);

  bool resumed() const { return journal_.resumed(); }
  // Of earlier sessions.
  const std::optional<RunPlan>& plan() const { return plan_; }
  std::map<CostKey, std::vector<bench::StepSample>>& calibrations() { return calibrations_; }
  std::vector<Trial>& trials() { return trials_; }

  Status Add(const RunPlan& plan);
  Status AddCalibration(const Setting& setting, const std::vector<bench::StepSample>& steps);
  Status Add(const Trial& trial);
  Status AddSpent() { return Append("spent", {}); }  // the time alone

 private:
  RunJournal(Journal journal, const Budget* budget)
      : journal_(std::move(journal)), budget_(budget) {}

  Status Read(Session* session);
  Status ReadEntry(const boost::json::object& entry);
  Status Append(std::string_view kind, boost::json::object entry);

  Journal journal_;
  const Budget* budget_;
  std::optional<RunPlan> plan_;
  std::map<CostKey, std::vector<bench::StepSample>> calibrations_;
  std::vector<Trial> trials_;
};

}  // namespace vivace::tune
