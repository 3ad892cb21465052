// Which setting to measure next, and when to stop. Tens of measurements, not thousands.
//
// Each candidate has a forecast of its value and of the margin by which promises are kept. What
// measurements make of each (the logarithm of their ratio) is a Gaussian process over the settings:
// a forecast that is off by the same factor everywhere costs nothing, one that is off in a corner
// is found out there. Three phases mix:
//
//   explore  the candidate with the greatest expected improvement over the best that keeps its
//            promises, times the chance that it keeps them (Gardner et al., "Bayesian optimization
//            with inequality constraints", ICML 2014), until none is expected to gain kLeastGain,
//            or `most_explored` were tried
//   race     the leader, all that it does not clearly beat, and those of which it is not sure
//            whether they keep a promise are measured again, in turns, so that a slow moment of
//            the machine hits them alike; who is clearly behind drops out
//   done     one is left, or those left have had `most_repeats`: no difference was found
//
// Trials that are short are mostly noise. Before it is done, the leader, the one nearest to it and
// those measured first are therefore repeated in turns, until each was measured for kEnoughS or
// kEnoughTrials tell how much it varies.
//
// What keeps its promises goes before all that does not, whatever its value (objective.h).
//
// Pure and deterministic: the same scores give the same choices. One thread. Cost: two Gaussian
// processes and their predictions for each candidate per measurement, milliseconds for some
// hundred.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tune/gaussian_process.h"
#include "tune/objective.h"
#include "tune/setting.h"

namespace vivace::tune {

struct SearchOptions {
  size_t most_explored = 40;         // candidates
  int most_repeats = 4;              // of one
  size_t most_trials = 1000;         // of all
  std::vector<size_t> outside = {};  // never lead, are no rivals and are not explored: measured
                                     // only where they are among `first`
};

class Search {
 public:
  static constexpr double kLeastGain = 0.003;  // as a share: what a further trial must promise
  static constexpr double kSure = 2;           // standard errors of a clear difference
  static constexpr double kDoubtful = 0.1;     // a margin this small may be another the next time
  static constexpr int kSureTrials = 3;        // but not after so many
  static constexpr double kEnoughS = 2;        // of trials, for a claim about a setting,
  static constexpr int kEnoughTrials = 12;     // or so many of them

  // `first` are measured before all others, such as the defaults, which everything is compared
  // with.
  Search(std::vector<Place> places, std::vector<size_t> first, const SearchOptions& options);

  // Scores by the forecast, one for each place; above 0. May be called again when it has learned.
  void Forecast(const std::vector<Score>& scores);
  // A measurement, and how long it was; 0 and below: it gave nothing.
  void Add(size_t candidate, const Score& score, double seconds = kEnoughS);

  // Only races from here on: time grows short.
  void EndExploring() { exploring_ = false; }
  // Short trials are not repeated for their shortness from here on.
  void EndRepeating() { repeating_ = false; }

  // Nothing: done, and why_done() says why.
  std::optional<size_t> Next();
  const std::string& why_done() const { return why_done_; }

  // The best so far; nothing before the first measurement.
  std::optional<size_t> leader() const;
  // Those that the leader does not clearly beat, best first, without it.
  std::vector<size_t> rivals() const;
  // Whether both were measured, and the first is better by more than chance.
  bool ClearlyBetter(size_t first, size_t second) const;
  bool explored(size_t candidate) const { return count(candidate) > 0; }
  int count(size_t candidate) const;
  // Whether its trials were long, or many, enough for a claim about it.
  bool WellMeasured(size_t candidate) const;
  // Of the measurement in the middle: a stall of the machine is no property of a setting.
  double score(size_t candidate) const;
  // Standard deviation of one measurement, as a share.
  double noise() const;

 private:
  struct Tried {
    size_t candidate = 0;
    std::vector<Score> scores = {};
    size_t middle = 0;  // of these, by MiddleOf
    double seconds = 0;
    double value() const;  // a logarithm
    double margin() const { return scores[middle].margin; }
    bool kept() const { return margin() >= 0; }
    double rank() const;  // among those that keep promises, or among those that do not
    int count() const { return static_cast<int>(scores.size()); }
    bool gave_nothing() const;
    bool well_measured() const {
      return gave_nothing() || seconds >= kEnoughS || count() >= kEnoughTrials;
    }
  };

  const Tried* Find(size_t candidate) const;
  template <typename Among>
  const Tried* BestOf(const Among& among) const;
  const Tried* Leader() const;
  const Tried* NearestTo(const Tried& leader) const;
  double ErrorOf(const Tried& tried) const;
  bool MayWin(size_t candidate) const;
  bool InDoubt(const Tried& tried, const Tried& leader) const;
  bool MayBeLuck(const Tried& leader) const;
  std::optional<size_t> TooBrief(const Tried& leader) const;
  std::string Verdict(const Tried& leader) const;
  double ChanceOf(size_t candidate) const;
  void Learn();
  std::optional<size_t> Explore();
  std::optional<size_t> Race();
  template <typename Gain>
  std::optional<size_t> BestFresh(double least, const Gain& gain) const;

  const std::vector<Place> places_;
  const std::vector<size_t> first_;
  const SearchOptions options_;
  std::vector<double> forecasts_;         // logarithms
  std::vector<double> forecast_margins_;  // likewise
  std::vector<Tried> tried_;              // in order of their first measurement
  size_t trials_ = 0;
  bool exploring_ = true, repeating_ = true;
  std::vector<Belief> beliefs_, margins_;  // of log value and margin at each place, from Learn
  std::string why_done_;
};

}  // namespace vivace::tune
