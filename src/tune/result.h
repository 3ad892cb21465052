// What tuning found, for report.h. Pure but for the reading of the machine's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tune/candidate.h"
#include "tune/objective.h"
#include "tune/search.h"
#include "tune/session.h"
#include "tune/settings_forecast.h"
#include "tune/traffic.h"

namespace vivace::tune {

struct TuneResult {
  std::vector<Candidate> candidates;  // in the space's order
  // Settings of the space that were forecast, and the index of the candidate each is one with.
  std::vector<std::pair<Setting, size_t>> standing;
  std::optional<size_t> defaults;  // index of what `serve` would use; none: it was not looked at
  size_t winner = 0;               // index; only if any was tried
  bool any = false;
  std::vector<size_t> rivals;   // not clearly worse than the winner, best first
  bool beats_defaults = false;  // the winner, by more than chance, and not `brief`
  bool brief = false;           // trials of the winner or the defaults are too short for a claim
  double noise = 0;             // of one trial, as a share
  ForecastError error;
  double step_error = 0;  // of the fit with the most threads, typical
  size_t settings = 0;    // of the space
  size_t left_out = 0;    // that this machine has no room for
  int trials = 0;
  double spent_s = 0;
  bool interrupted = false;
  bool resumed = false;
  std::string why_done;
  std::vector<std::string> notes;  // for people
  std::string workload;            // its name
  size_t requests = 0;             // of one trial
  std::string model, machine;      // for reports
  std::string objective, unit;

  // Settings of the space that were measured.
  size_t measured() const;
  // What the winner gives beyond the defaults, as a share; 0 where these were not measured.
  double gain() const;
};

// All that follows from the candidates and their trials. `search` may be null: nothing was tried.
// What only the run knows (settings, left_out, trials, resumed, step_error, why_done) is set by it.
TuneResult ResultOf(const Session& session, const Traffic& traffic, const Objective& objective,
                    Candidates candidates, const Search* search);

}  // namespace vivace::tune
