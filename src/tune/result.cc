#include "tune/result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cpu.h"
#include "bench/machine_limits.h"
#include "kernels/fastest_isa.h"
#include "load/validity.h"

namespace vivace::tune {

size_t TuneResult::measured() const {
  return static_cast<size_t>(std::ranges::count_if(
      candidates, [](const Candidate& c) { return c.tried() && !c.outside; }));
}

double TuneResult::gain() const {
  const double before = any && defaults ? candidates[*defaults].score.value : 0;
  return before > 0 ? candidates[winner].score.value / before - 1 : 0;
}

namespace {

// What figures of little are worth.
void NoteSmallness(TuneResult* result) {
  const Candidate& winner = result->candidates[result->winner];
  const std::string few = load::FewForP99(winner.measured.figures.completed);
  if (!few.empty()) {
    result->notes.push_back(fmt::format(
        "In a trial of the winner {}; --num-prompts, or a larger dataset, gives more.", few));
  }
  if (!result->brief) return;
  double seconds = 0;
  for (const Trial& trial : winner.trials) seconds += trial.measured.elapsed_s;
  result->notes.push_back(fmt::format(
      "Trials were short: the winner was measured for {:.2g} s in {} trial{}, and another run may "
      "find another one. More requests in a trial, or a larger --budget, tell more.",
      seconds, winner.trials.size(), winner.trials.size() == 1 ? "" : "s"));
}

}  // namespace

TuneResult ResultOf(const Session& session, const Traffic& traffic, const Objective& objective,
                    Candidates candidates, const Search* search) {
  TuneResult result;
  for (Candidate& candidate : candidates.all)
    if (candidate.tried()) Summarise(objective, &candidate);
  if (search != nullptr && search->leader()) {
    result.any = true;
    result.winner = *search->leader();
    result.rivals = search->rivals();
    result.noise = search->noise();
    const bool compares = candidates.defaults && search->explored(*candidates.defaults);
    const size_t compared = compares ? *candidates.defaults : result.winner;
    result.brief = !search->WellMeasured(result.winner) || !search->WellMeasured(compared);
    result.beats_defaults = !result.brief && search->ClearlyBetter(result.winner, compared);
  }
  for (const auto& [setting, standing_for] : candidates.standing) {
    if (const auto found = candidates.Find(standing_for))
      result.standing.emplace_back(setting, *found);
  }
  result.defaults = candidates.defaults;
  result.candidates = std::move(candidates.all);
  MarkFront(&result.candidates);
  result.error = ErrorOfForecasts(result.candidates);
  result.spent_s = session.budget.Spent();
  result.interrupted = session.budget.Stopped();
  result.notes = session.notes;
  if (!result.any && !result.interrupted) {
    result.notes.push_back(fmt::format(
        "The budget of {:g} s ended before a setting was measured: give a larger --budget. The "
        "same command then goes on.",
        session.budget.total()));
  }
  if (result.any && result.candidates[result.winner].measured.partial) {
    result.notes.emplace_back(
        "The winner's trial was cut short: its figures are of what had been computed by then.");
  }
  if (result.any) NoteSmallness(&result);
  result.workload = traffic.workload.name;
  result.requests = traffic.workload.requests.size();
  result.model = session.file.path();
  result.machine = fmt::format("{}, {} usable processors, {}", bench::CpuName(), UsableCpus(),
                               Name(session.options.engine.isa.value_or(kernels::FastestIsa())));
  result.objective = objective.name();
  result.unit = objective.unit();
  return result;
}

}  // namespace vivace::tune
