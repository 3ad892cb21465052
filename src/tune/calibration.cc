#include "tune/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tune/run_journal.h"

namespace vivace::tune {
namespace {

constexpr double kCalibrationShare = 0.25, kMostCalibrationS = 60, kMostEachS = 8;
constexpr double kMostCalibratingShare = 0.4;  // of the budget, loading too
constexpr int32_t kMostDecoded = 64;           // where the traffic does not say

}  // namespace

CostKey KeyOf(const Setting& setting) { return {setting.threads, std::string(KvName(setting))}; }

// As wide as the settings that fit allow; narrower where these do not fit all at once.
Status StepTimes::CalibrateOne(Session* session, RunJournal* journal, const Traffic& traffic,
                               const Setting& setting, const Widest& widest, double seconds) {
  const TypicalLengths typical = TypicalOf(traffic);
  const int32_t asked = traffic.max_concurrency > 0 ? traffic.max_concurrency : kMostDecoded;
  bench::SampleOptions options{.engine = session->ConfigOf(setting),
                               .input_len = typical.input,
                               .output_len = typical.output,
                               .sequences = std::min(asked, widest.sequences),
                               .step_tokens = widest.tokens,
                               .most_seconds = seconds,
                               .stop = session->options.stop,
                               .deadline_ns = session->budget.DeadlineNs()};
  auto samples = bench::SampleSteps(options, session->file);
  while (!samples && samples.error().code == ErrorCode::kResourceExhausted &&
         options.sequences > 1) {
    options.sequences /= 2;
    samples = bench::SampleSteps(options, session->file);
  }
  if (!samples) return tl::unexpected<Error>(samples.error());
  if (session->budget.Over() || samples->empty()) return {};
  VIVACE_RETURN_IF_ERROR(journal->AddCalibration(setting, *samples));
  kinds_[KeyOf(setting)].calibration = std::move(*samples);
  return {};
}

Status StepTimes::Calibrate(Session* session, RunJournal* journal, const Traffic& traffic,
                            const std::optional<Setting>& own, std::vector<Setting>* settings) {
  std::vector<Setting> kinds;  // one of each; that of the defaults first, if the space has it
  const auto add = [&](const Setting& setting) {
    if (std::ranges::count(kinds, KeyOf(setting), KeyOf) == 0) kinds.push_back(setting);
  };
  if (own && std::ranges::count(*settings, KeyOf(*own), KeyOf) > 0) add(*own);
  for (const Setting& setting : *settings) add(setting);
  if (own) add(*own);
  for (auto& [key, samples] : journal->calibrations()) kinds_[key].calibration = samples;
  Widest widest;
  for (const Setting& setting : *settings) {
    widest.sequences = std::max(widest.sequences, setting.max_num_seqs);
    widest.tokens = std::max(widest.tokens, setting.max_num_batched_tokens);
  }
  const Budget& budget = session->budget;
  const double all = std::min(kMostCalibrationS, budget.total() * kCalibrationShare);
  const double each = std::min(all / static_cast<double>(kinds.size()), kMostEachS);
  const int64_t start = SteadyNanos();
  for (const Setting& setting : kinds) {
    const CostKey key = KeyOf(setting);
    // Loading is not in `each`, and may take longer.
    const bool late =
        setting != kinds.front() && SecondsSince(start) > kMostCalibratingShare * budget.total();
    if (kinds_[key].calibration.empty() && !budget.Stopped() && !budget.Out() && !late) {
      session->tell(fmt::format("timing steps with {} threads, cache {}", key.first, key.second));
      VIVACE_RETURN_IF_ERROR(CalibrateOne(session, journal, traffic, setting, widest, each));
    }
    if (kinds_[key].calibration.empty()) {
      kinds_.erase(key);
    } else {
      kinds_[key].model = StepTimeModel::Fit(kinds_[key].calibration);
    }
  }
  // Nothing can be said of settings whose steps there was no time to measure.
  const auto dropped =
      std::erase_if(*settings, [this](const Setting& s) { return !known(KeyOf(s)); });
  if (dropped > 0 && !budget.Over()) {
    session->notes.push_back(
        fmt::format("{} settings were not looked at: loading the model for each number of threads "
                    "and kind of cache took too long; give a larger --budget",
                    dropped));
  }
  return {};
}

void StepTimes::Learn(const CostKey& key, const std::vector<bench::StepSample>& steps) {
  std::vector<bench::StepSample>& trials = kinds_.at(key).trials;
  trials.insert(trials.end(), steps.begin(), steps.end());
}

bool StepTimes::Fit(const CostKey& key) {
  Kind& kind = kinds_.at(key);
  if (kind.trials.empty()) return false;
  std::vector<bench::StepSample> samples = kind.calibration;
  samples.insert(samples.end(), kind.trials.begin(), kind.trials.end());
  kind.model = StepTimeModel::Fit(samples);
  return true;
}

std::vector<CostKey> StepTimes::keys() const {
  std::vector<CostKey> keys;
  for (const auto& [key, kind] : kinds_) keys.push_back(key);
  return keys;
}

}  // namespace vivace::tune
