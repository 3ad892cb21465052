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

// What a setting scores, and what its forecast says, over octaves of sequences and tokens.
using Surface = std::function<double(double seqs, double tokens)>;

struct World {
  std::vector<Place> places;
  std::vector<double> truth, forecast;

  World(const Surface& score, const Surface& distortion) {
    for (int s = 2; s <= 9; ++s) {     // 4 .. 512
      for (int t = 8; t <= 14; ++t) {  // 256 .. 16384
        places.push_back({double(s), double(t), 5, 2, 0});
        truth.push_back(score(s, t));
        forecast.push_back(truth.back() * distortion(s, t));
      }
    }
  }
  double best() const { return *std::ranges::max_element(truth); }
};

// A measurement of candidate i, off by up to 2 % or so, the same for the same seed and count.
double Measure(const World& world, size_t i, uint64_t seed, int count, double noise) {
  double sum = 0;
  for (int k = 0; k < 6; ++k) sum += UniformDraw(seed * 1000 + i, count, k) - 0.5;
  return world.truth[i] * std::exp(noise * sum * std::sqrt(2.0));
}

struct Found {
  double share = 0;  // of the best there is
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
  found.share = world.truth[*search.leader()] / world.best();
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
double Exact(double, double) { return 1; }
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
  search.Add(7, 1);
  EXPECT_EQ(search.Next(), 3u);
}

class TwoSettings : public ::testing::Test {
 protected:
  Search search_{{Place{2, 8, 5, 2, 0}, Place{9, 14, 5, 2, 0}}, {0, 1}, {.most_repeats = 4}};
};

TEST_F(TwoSettings, AClearWinnerEndsTheRaceAtOnce) {
  search_.Forecast({100, 100});
  search_.Add(0, 100);
  search_.Add(1, 150);
  EXPECT_EQ(search_.Next(), std::nullopt);
  EXPECT_EQ(search_.leader(), 1u);
  EXPECT_TRUE(search_.rivals().empty());
  EXPECT_THAT(search_.why_done(), HasSubstr("clearly ahead"));
}

TEST_F(TwoSettings, EqualsAreMeasuredInTurnsAndCalledEqual) {
  search_.Forecast({100, 100});
  std::vector<size_t> order;
  while (const auto next = search_.Next()) {
    order.push_back(*next);
    search_.Add(*next, 100 + static_cast<double>(order.size() % 3));
    ASSERT_LT(order.size(), 20u);
  }
  EXPECT_EQ(order.size(), 8u);
  for (size_t i = 0; i + 1 < order.size(); i += 2) EXPECT_NE(order[i], order[i + 1]);
  EXPECT_EQ(search_.rivals().size(), 1u);
  EXPECT_THAT(search_.why_done(), HasSubstr("no clear difference"));
}

TEST_F(TwoSettings, LearnsHowMuchAMeasurementVaries) {
  for (int i = 0; i < 21; ++i) search_.Add(0, i % 3 == 0 ? 88 : i % 3 == 1 ? 100 : 113);
  EXPECT_NEAR(search_.noise(), 0.1, 0.02);
}

TEST_F(TwoSettings, WhatGaveNothingNeverLeads) {
  search_.Forecast({1000, 100});
  search_.Add(0, 0);
  EXPECT_EQ(search_.leader(), std::nullopt);
  search_.Add(1, 90);
  EXPECT_EQ(search_.leader(), 1u);
  EXPECT_NEAR(search_.expected(1), 90, 5);
}

TEST_F(TwoSettings, RacesOnlyWhenTimeGrowsShort) {
  Search search({Place{2}, Place{9}}, {0}, {});
  search.Forecast({100, 500});
  search.Add(0, 100);
  EXPECT_EQ(search.Next(), 1u);
  search.EndExploring();
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_THAT(search.why_done(), HasSubstr("no time to try others"));
}

TEST_F(TwoSettings, EndsAtItsTrials) {
  Search search({Place{}, Place{1}}, {0}, {.most_trials = 1});
  search.Forecast({1, 1});
  search.Add(0, 1);
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_THAT(search.why_done(), HasSubstr("as many trials"));
}

}  // namespace
}  // namespace vivace::tune
