#include "load/rate_search.h"

#include <gtest/gtest.h>

#include <vector>

namespace vivace::load {
namespace {

// Runs the search against a server that keeps its promise up to `limit`; the rates that were tried.
std::vector<double> Find(RateSearch* search, double limit) {
  std::vector<double> tried;
  while (const auto rate = search->Next()) {
    tried.push_back(*rate);
    search->Report(*rate, *rate <= limit);
  }
  return tried;
}

TEST(RateSearch, DoublesThenBisects) {
  RateSearch search({.precision = 0.05});
  const auto tried = Find(&search, 5.3);
  EXPECT_EQ(std::vector<double>(tried.begin(), tried.begin() + 5),
            (std::vector<double>{1, 2, 4, 8, 6}));
  EXPECT_LE(search.kept(), 5.3);
  EXPECT_GT(search.broken(), 5.3);
  EXPECT_LE(search.broken() - search.kept(), 0.05 * search.broken());
}

TEST(RateSearch, GoesDownFromARateThatIsTooHigh) {
  RateSearch search({.low = 16, .precision = 0.1});
  Find(&search, 1.5);
  EXPECT_LE(search.kept(), 1.5);
  EXPECT_GT(search.kept(), 1.2);
  EXPECT_GT(search.broken(), 1.5);
}

TEST(RateSearch, EndsAtTheBoundThatIsKept) {
  RateSearch search({.low = 1, .high = 6});
  EXPECT_EQ(Find(&search, 100), (std::vector<double>{1, 2, 4, 6}));
  EXPECT_EQ(search.kept(), 6);
  EXPECT_EQ(search.broken(), 0);
}

TEST(RateSearch, GivesUpWhereNothingIsKept) {
  RateSearch search({.first = 1, .least = 0.2});
  EXPECT_EQ(Find(&search, 0), (std::vector<double>{1, 0.5, 0.25}));
  EXPECT_EQ(search.kept(), 0);
}

TEST(RateSearch, TrialsAreBounded) {
  RateSearch search({.precision = 1e-9, .max_trials = 7});
  EXPECT_EQ(Find(&search, 3.3).size(), 7u);
  EXPECT_EQ(search.trials(), 7);
}

}  // namespace
}  // namespace vivace::load
