#include "tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace vivace::tune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

double Exact(double, double) { return 1; }
double Easy(double, double) { return 5; }

// What a setting scores, and what its forecast says, over octaves of sequences and tokens.
using Surface = std::function<double(double seqs, double tokens)>;

struct World {
  std::vector<Place> places;
  std::vector<Score> truth, forecast;

  // `promise`: promised over measured, of the figure that is promised; `misjudged`: what its
  // forecast makes of it.
  World(const Surface& score, const Surface& distortion, const Surface& promise = Easy,
        const Surface& misjudged = Exact) {
    for (int s = 2; s <= 9; ++s) {     // 4 .. 512
      for (int t = 8; t <= 14; ++t) {  // 256 .. 16384
        places.push_back({double(s), double(t), 5, 2, 0});
        truth.push_back({.value = score(s, t), .margin = std::log(promise(s, t))});
        forecast.push_back({.value = truth.back().value * distortion(s, t),
                            .margin = truth.back().margin + std::log(misjudged(s, t))});
      }
    }
  }
  const Score& best() const {
    return *std::ranges::max_element(truth,
                                     [](const Score& a, const Score& b) { return Better(b, a); });
  }
};

// A measurement of candidate i, off by up to 2 % or so, the same for the same seed and count.
Score Measure(const World& world, size_t i, uint64_t seed, int count, double noise) {
  double sum = 0, tail = 0;
  for (int k = 0; k < 6; ++k) {
    sum += UniformDraw(seed * 1000 + i, count, k) - 0.5;
    tail += UniformDraw(seed * 1000 + i, count, k + 6) - 0.5;
  }
  Score score = world.truth[i];
  score.value *= std::exp(noise * sum * std::sqrt(2.0));
  if (score.margin < kFar) score.margin += noise * tail * std::sqrt(2.0);
  return score;
}

struct Found {
  double share = 0;  // of the best there is
  bool kept = false;
  int explored = 0, trials = 0;
};

Found RunSearch(const World& world, uint64_t seed, double noise) {
  const size_t fifth = world.places.size() / 5;
  Search search(world.places, {20}, {.most_explored = fifth, .most_repeats = 3});
  search.Forecast(world.forecast);
  Found found;
  while (const auto next = search.Next()) {
    found.explored += !search.explored(*next);
    found.trials += 1;
    search.Add(*next, Measure(world, *next, seed, search.count(*next), noise));
    if (found.trials > 200) break;
  }
  const Score& leader = world.truth[*search.leader()];
  const auto rank = [](const Score& score) { return score.value * BrokenFactor(score.margin); };
  found.share = rank(leader) / rank(world.best());
  found.kept = leader.kept();
  return found;
}

double Hill(double s, double t) {
  return 1000 * std::exp(-0.06 * (s - 5) * (s - 5) - 0.04 * (t - 10.5) * (t - 10.5));
}
double Ridge(double s, double t) {  // rises, then a cliff: preemptions
  return 500 * std::min(s, 6.0) * (s > 7 ? 0.6 : 1.0) * (1 + 0.02 * std::min(t, 11.0));
}
double Plateau(double s, double t) {
  return 800 * (1 - std::exp(-0.8 * (s - 1))) * (1 - std::exp(-0.5 * (t - 6)));
}
double TwiceAsMuch(double, double) { return 2; }
double Tilted(double s, double t) { return std::exp(0.08 * (s - 5) - 0.05 * (t - 11)); }

TEST(Search, FindsTheBestWithinThreePercentInAFifthOfTheGrid) {
  const std::vector<Surface> scores = {Hill, Ridge, Plateau};
  const std::vector<Surface> distortions = {Exact, TwiceAsMuch, Tilted};
  for (size_t s = 0; s < scores.size(); ++s) {
    for (size_t d = 0; d < distortions.size(); ++d) {
      const World world(scores[s], distortions[d]);
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        const Found found = RunSearch(world, seed, 0.01);
        EXPECT_GE(found.share, 0.97) << "surface " << s << ", distortion " << d << ", " << seed;
        EXPECT_LE(found.explored, 11);
      }
    }
  }
}

// Gaps grow with the batch and with the tokens of a step, and the best that keeps them short is at
// the edge of what does. Forecasts of gaps are off by a tenth.
double ShortGaps(double s, double t) { return 1.02 * std::exp(0.35 * (5 - s) + 0.15 * (9 - t)); }

TEST(Search, FindsTheBestOfThoseThatKeepAPromise) {
  const Surface rising = [](double s, double t) { return 300 * std::exp(0.15 * s) + 5 * t; };
  const std::vector<Surface> misjudgements = {
      Exact, [](double, double) { return 1.1; }, [](double, double) { return 0.9; },
      [](double s, double) { return std::exp(0.03 * (s - 5)); }};
  for (size_t m = 0; m < misjudgements.size(); ++m) {
    const World world(rising, Tilted, ShortGaps, misjudgements[m]);
    ASSERT_TRUE(world.best().kept());
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Found found = RunSearch(world, seed, 0.002);
      EXPECT_TRUE(found.kept) << "forecast " << m << ", " << seed;
      EXPECT_GE(found.share, 0.97) << "forecast " << m << ", " << seed;
      EXPECT_LE(found.explored, 11);
    }
  }
}

// The forecast says that nothing can keep it, and one place does.
TEST(Search, LooksForWhatMayKeepThePromise) {
  const Surface one = [](double s, double t) { return s == 2 && t == 8 ? 1.2 : 0.7; };
  const World world(Plateau, Exact, one, [](double, double) { return 0.8; });
  EXPECT_TRUE(RunSearch(world, 1, 0.002).kept);
}

TEST(Search, WhereNothingKeepsThePromiseTheNearestWins) {
  const Surface hopeless = [](double s, double t) { return 0.5 * std::exp(-0.1 * (s + t - 10)); };
  const World world(Plateau, Exact, hopeless);
  const Found found = RunSearch(world, 1, 0.002);
  EXPECT_FALSE(found.kept);
  EXPECT_GE(found.share, 0.97);
}

// A forecast that says nothing: the search has only what it measures.
TEST(Search, GetsNearWithoutAForecast) {
  const World world(Hill, [](double s, double t) { return 1 / Hill(s, t); });
  EXPECT_GE(RunSearch(world, 1, 0.01).share, 0.9);
}

TEST(Search, AGoodForecastNeedsFewTrials) {
  const World world(Hill, Exact);
  EXPECT_LE(RunSearch(world, 1, 0.005).explored, 8);
}

TEST(Search, MeasuresTheDefaultsFirst) {
  const World world(Hill, Exact);
  Search search(world.places, {7, 3}, {});
  search.Forecast(world.forecast);
  EXPECT_EQ(search.Next(), 7u);
  search.Add(7, {.value = 1});
  EXPECT_EQ(search.Next(), 3u);
}

std::vector<Score> Values(const std::vector<double>& values) {
  std::vector<Score> scores;
  for (const double value : values) scores.push_back({.value = value});
  return scores;
}

class TwoSettings : public ::testing::Test {
 protected:
  Search search_{{Place{2, 8, 5, 2, 0}, Place{9, 14, 5, 2, 0}}, {0, 1}, {.most_repeats = 4}};
};

TEST_F(TwoSettings, AClearWinnerEndsTheRaceAtOnce) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 100});
  search_.Add(1, {.value = 150});
  EXPECT_EQ(search_.Next(), std::nullopt);
  EXPECT_EQ(search_.leader(), 1u);
  EXPECT_TRUE(search_.rivals().empty());
  EXPECT_THAT(search_.why_done(), HasSubstr("the winner is clearly ahead of 1 other"));
}

// What follows is no clear lead.
TEST_F(TwoSettings, WithoutARivalNothingIsAhead) {
  Search search({Place{2}, Place{9}}, {0}, {});
  search.Forecast(Values({100, 100}));
  search.Add(0, {.value = 100});
  search.EndExploring();
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_EQ(search.why_done(), "there was no time to try others");
}

TEST_F(TwoSettings, WhatKeepsNoPromiseIsNotAhead) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 100, .margin = -0.5});
  search_.Add(1, {.value = 40, .margin = -1});
  EXPECT_EQ(search_.Next(), std::nullopt);
  EXPECT_THAT(search_.why_done(), HasSubstr("nothing that was measured keeps the promise"));
  EXPECT_THAT(search_.why_done(), Not(HasSubstr("ahead")));
}

TEST_F(TwoSettings, WhereTheDefaultsServeAsWellItIsSaid) {
  Search search({Place{2}, Place{5}, Place{9}}, {2}, {.outside = {2}});
  search.Forecast(Values({100, 100, 100}));
  search.Add(2, {.value = 150});
  search.Add(0, {.value = 150});
  search.Add(1, {.value = 100});
  while (const auto next = search.Next()) search.Add(*next, {.value = *next == 1 ? 100.0 : 150.0});
  EXPECT_THAT(search.why_done(), HasSubstr("ahead of 1 other, but not of the defaults"));
}

TEST_F(TwoSettings, WhatIsShownOfSeveralIsOneOfThem) {
  search_.Add(0, {.value = 738.98});
  search_.Add(0, {.value = 690.23});
  EXPECT_EQ(search_.score(0), 690.23);
}

// A tenth of a second says next to nothing: two that are alike differ by nine tenths at first.
TEST_F(TwoSettings, ShortTrialsAreRepeatedInTurns) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 70}, 0.1);
  search_.Add(1, {.value = 133}, 0.1);
  const double drawn[] = {120, 75, 100, 133, 90, 70};
  int trials = 2;
  while (const auto next = search_.Next()) {
    ASSERT_LE(++trials, 2 * Search::kEnoughTrials);
    search_.Add(*next, {.value = drawn[search_.count(*next) % 6]}, 0.1);
    EXPECT_LE(std::abs(search_.count(0) - search_.count(1)), 1);
  }
  EXPECT_EQ(trials, 2 * Search::kEnoughTrials);
  EXPECT_TRUE(search_.WellMeasured(0) && search_.WellMeasured(1));
  EXPECT_GT(search_.noise(), 0.15);
  EXPECT_FALSE(search_.ClearlyBetter(1, 0));
  EXPECT_THAT(search_.why_done(), HasSubstr("no clear difference"));
}

TEST_F(TwoSettings, SecondsEndThatToo) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 100}, Search::kEnoughS / 2);
  search_.Add(1, {.value = 200}, Search::kEnoughS / 2);
  for (int i = 0; i < 2; ++i) {
    const auto next = search_.Next();
    ASSERT_TRUE(next);
    search_.Add(*next, {.value = *next == 0 ? 100.0 : 200.0}, Search::kEnoughS / 2);
  }
  EXPECT_EQ(search_.Next(), std::nullopt);
  EXPECT_EQ(search_.count(0), 2);
  EXPECT_THAT(search_.why_done(), HasSubstr("clearly ahead"));
}

TEST_F(TwoSettings, WithoutTimeForThatNoClearLeadIsClaimed) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 100}, 0.1);
  search_.Add(1, {.value = 200}, 0.1);
  search_.EndRepeating();
  EXPECT_EQ(search_.Next(), std::nullopt);
  EXPECT_THAT(search_.why_done(), HasSubstr("the winner was ahead of 1 other in short trials"));
  EXPECT_FALSE(search_.WellMeasured(1));
}

TEST_F(TwoSettings, AWinnerIsMeasuredTwiceWhereNoiseCouldHaveMadeIt) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 100});
  search_.Add(1, {.value = 115});
  ASSERT_EQ(search_.Next(), 1u);
  search_.Add(1, {.value = 99});  // this machine varies by more than was thought
  EXPECT_EQ(search_.Next(), 0u);
  EXPECT_FALSE(search_.ClearlyBetter(1, 0));
}

TEST_F(TwoSettings, EqualsAreMeasuredInTurnsAndCalledEqual) {
  search_.Forecast(Values({100, 100}));
  std::vector<size_t> order;
  while (const auto next = search_.Next()) {
    order.push_back(*next);
    search_.Add(*next, {.value = 100 + static_cast<double>(order.size() % 3)});
    ASSERT_LT(order.size(), 20u);
  }
  EXPECT_EQ(order.size(), 8u);
  for (size_t i = 0; i + 1 < order.size(); i += 2) EXPECT_NE(order[i], order[i + 1]);
  EXPECT_EQ(search_.rivals().size(), 1u);
  EXPECT_THAT(search_.why_done(), HasSubstr("no clear difference"));
}

TEST_F(TwoSettings, WhatBreaksAPromiseNeverLeadsWhatKeepsIt) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 100, .margin = -0.5});
  EXPECT_EQ(search_.leader(), 0u);
  search_.Add(1, {.value = 40, .margin = 0.5});
  EXPECT_EQ(search_.leader(), 1u);
  EXPECT_TRUE(search_.ClearlyBetter(1, 0));
  EXPECT_FALSE(search_.ClearlyBetter(0, 1));
  EXPECT_TRUE(search_.rivals().empty());
  EXPECT_EQ(search_.Next(), std::nullopt);
}

// One stall of the machine may not throw out the best; nor may luck make a winner of the other.
TEST_F(TwoSettings, APromiseInDoubtIsMeasuredAgain) {
  search_.Forecast(Values({100, 100}));
  search_.Add(0, {.value = 40, .margin = 0.5});
  search_.Add(1, {.value = 100, .margin = -0.05});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(search_.leader(), 0u);
    // The leader is measured in turns with it.
    const auto next = search_.Next();
    ASSERT_TRUE(next);
    if (*next == 0) search_.Add(0, {.value = 40, .margin = 0.5});
    ASSERT_EQ(search_.Next(), 1u);
    search_.Add(1, {.value = 100, .margin = 0.05});
  }
  EXPECT_EQ(search_.leader(), 1u);  // two of three
  EXPECT_EQ(search_.Next(), std::nullopt);
}

TEST_F(TwoSettings, WhatIsOutsideIsMeasuredOnceAndNeverLeads) {
  Search search({Place{2}, Place{2.1}, Place{9}}, {1}, {.outside = {1}});
  search.Forecast(Values({100, 300, 90}));
  EXPECT_EQ(search.Next(), 1u);
  search.Add(1, {.value = 300});
  EXPECT_EQ(search.leader(), std::nullopt);
  while (const auto next = search.Next()) {
    ASSERT_NE(*next, 1u);
    search.Add(*next, {.value = *next == 0 ? 100.0 : 90.0});
  }
  EXPECT_EQ(search.leader(), 0u);
  EXPECT_TRUE(search.ClearlyBetter(1, 0));
  EXPECT_TRUE(search.rivals().empty());
}

TEST_F(TwoSettings, LearnsHowMuchAMeasurementVaries) {
  for (int i = 0; i < 21; ++i)
    search_.Add(0, {.value = i % 3 == 0 ? 88.0 : i % 3 == 1 ? 100.0 : 113.0});
  EXPECT_NEAR(search_.noise(), 0.1, 0.02);
}

TEST_F(TwoSettings, WhatGaveNothingNeverLeads) {
  search_.Forecast(Values({1000, 100}));
  search_.Add(0, {.value = 0});
  EXPECT_EQ(search_.leader(), std::nullopt);
  search_.Add(1, {.value = 90});
  EXPECT_EQ(search_.leader(), 1u);
  EXPECT_EQ(search_.score(1), 90);
}

TEST_F(TwoSettings, RacesOnlyWhenTimeGrowsShort) {
  Search search({Place{2}, Place{9}}, {0}, {});
  search.Forecast(Values({100, 500}));
  search.Add(0, {.value = 100});
  EXPECT_EQ(search.Next(), 1u);
  search.EndExploring();
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_THAT(search.why_done(), HasSubstr("no time to try others"));
}

TEST_F(TwoSettings, EndsAtItsTrials) {
  Search search({Place{}, Place{1}}, {0}, {.most_trials = 1});
  search.Forecast(Values({1, 1}));
  search.Add(0, {.value = 1});
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_THAT(search.why_done(), HasSubstr("as many trials"));
}

}  // namespace
}  // namespace vivace::tune
