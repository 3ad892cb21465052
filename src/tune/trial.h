// One measurement of one setting, and how it is kept in the journal and in pareto.json: the members
// there are load::Figures' and bench::EngineUse's. What is read back was checked, member by member.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/offline.h"
#include "bench/step_samples.h"
#include "load/figures.h"
#include "tune/setting.h"

namespace vivace::tune {

struct Measured {
  load::Figures figures;  // of latencies n, mean, p50, p90, p95, p99 and max are kept
  bench::EngineUse use;
  double elapsed_s = 0;
  bool partial = false;  // it was too slow to be let end
};

struct Trial {
  Setting setting;
  Measured measured = {};
  double took_s = 0;                          // of the budget, loading and all
  std::vector<bench::StepSample> steps = {};  // some of its steps
  std::string error = {};  // it could not be measured: why; the rest is empty then
};

boost::json::object ToJson(const Setting& setting);
boost::json::object ToJson(const Measured& measured);
boost::json::object ToJson(const Trial& trial);
boost::json::array ToJson(const std::vector<bench::StepSample>& samples);

Result<Setting> SettingFromJson(const boost::json::value& value);
Result<Trial> TrialFromJson(const boost::json::value& value);
Result<std::vector<bench::StepSample>> SamplesFromJson(const boost::json::value& value);

}  // namespace vivace::tune
