// Every tier's passes over logits against plain loops, at every count around a vector's width.
#include "kernels/vocab_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace vivace::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VocabOpsTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine has no " << Name(GetParam());
  }
  const VocabOps& ops() const { return GetVocabOps(GetParam()); }

  // `count` values, some equal, one banned; with room behind for ops that work in place.
  static std::vector<float> Row(int32_t count) {
    std::mt19937 rng(static_cast<uint32_t>(count) + 1);
    std::vector<float> row(static_cast<size_t>(count + kVocabSlack), 99.0f);
    for (int32_t i = 0; i < count; ++i) {
      row[static_cast<size_t>(i)] = static_cast<float>(static_cast<int>(rng() % 4000) - 2000) / 128;
    }
    if (count > 3) row[2] = -kInfinity;
    return row;
  }
  static std::vector<int32_t> Counts() {
    std::vector<int32_t> counts = {1023, 4096, 10'007};
    for (int32_t i = 1; i <= 67; ++i) counts.push_back(i);
    return counts;
  }
};

INSTANTIATE_TEST_SUITE_P(Tiers, VocabOpsTest, ::testing::ValuesIn(kIsas),
                         [](const auto& tier) { return std::string(Name(tier.param)); });

TEST_P(VocabOpsTest, CollectTakesIdsAndValuesInOrder) {
  for (const int32_t count : Counts()) {
    const std::vector<float> row = Row(count);
    for (const float floor : {std::numeric_limits<float>::lowest(), 0.0f, 14.0f, 50.0f}) {
      std::vector<int32_t> ids(row.size());
      std::vector<float> values(row.size());
      const int32_t n = ops().collect(row.data(), count, floor, ids.data(), values.data());
      int32_t at = 0;
      for (int32_t i = 0; i < count; ++i) {
        const float x = row[static_cast<size_t>(i)];
        if (!(x >= floor)) continue;
        ASSERT_LT(at, n);
        EXPECT_EQ(ids[static_cast<size_t>(at)], i);
        EXPECT_EQ(values[static_cast<size_t>(at)], x);
        ++at;
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST_P(VocabOpsTest, WeighIsSumExpWithTheWeightsKept) {
  for (const int32_t count : Counts()) {
    std::vector<float> row = Row(count);
    const std::vector<float> before = row;
    const float max = ops().max(row.data(), count);
    const double wanted = ops().sum_exp(row.data(), count, max, 3.0f);
    EXPECT_NEAR(ops().weigh(row.data(), count, max, 3.0f), wanted, 1e-6 * wanted);
    for (int32_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const double exact = std::exp((double{before[at]} - max) * 3.0);
      EXPECT_NEAR(row[at], exact, 8e-6 * exact + 2e-38);
      if (before[at] == max) {
        EXPECT_EQ(row[at], 1.0f);
      }
    }
    for (size_t i = static_cast<size_t>(count); i < row.size(); ++i) EXPECT_EQ(row[i], 99.0f);
  }
}

TEST_P(VocabOpsTest, SumAboveAndKeepBetweenSplitTheSameSet) {
  for (const int32_t count : Counts()) {
    std::vector<float> row = Row(count);
    const float low = -3.25f, high = 7.5f;  // both occur in the row
    double above = 0;
    std::vector<float> wanted;
    for (int32_t i = 0; i < count; ++i) {
      const float x = row[static_cast<size_t>(i)];
      if (x > low) above += x;
      if (x > low && x <= high) wanted.push_back(x);
    }
    EXPECT_NEAR(ops().sum_above(row.data(), count, low), above, 1e-5 * (std::abs(above) + count));
    std::vector<float> out(row.size());
    const int32_t n = ops().keep_between(row.data(), count, low, high, out.data());
    out.resize(static_cast<size_t>(n));
    EXPECT_EQ(out, wanted);
    ASSERT_EQ(ops().keep_between(row.data(), count, low, high, row.data()), n) << "in place";
    row.resize(static_cast<size_t>(n));
    EXPECT_EQ(row, wanted);
  }
}

TEST_P(VocabOpsTest, KeepPairsKeepsThemTogether) {
  for (const int32_t count : Counts()) {
    std::vector<float> row = Row(count);
    std::vector<int32_t> ids(row.size());
    std::vector<int32_t> wanted_ids;
    std::vector<float> wanted;
    for (int32_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      ids[at] = 7 * i;
      if (row[at] >= 1.5f) {
        wanted_ids.push_back(7 * i);
        wanted.push_back(row[at]);
      }
    }
    const int32_t n = ops().keep_pairs(ids.data(), row.data(), count, 1.5f);
    ids.resize(static_cast<size_t>(n));
    row.resize(static_cast<size_t>(n));
    EXPECT_EQ(ids, wanted_ids);
    EXPECT_EQ(row, wanted);
  }
}

TEST_P(VocabOpsTest, MaxSeesNanAndInfinityWherever) {
  for (const int32_t count : {1, 15, 16, 17, 100}) {
    for (int32_t i = 0; i < count; ++i) {
      for (const float bad : {NAN, kInfinity}) {
        std::vector<float> row = Row(count);
        row[static_cast<size_t>(i)] = bad;
        EXPECT_TRUE(std::isnan(ops().max(row.data(), count)));
      }
    }
  }
}

}  // namespace
}  // namespace vivace::kernels
