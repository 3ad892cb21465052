#include "engine/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/rope.h"

namespace vivace {
namespace {

// Every row is the definition's, whether its position is in the table, new to it or beyond it.
TEST(RopeTable, RowsDependOnThePositionOnly) {
  model::RopeSpec spec;
  spec.dims = 64;
  constexpr auto kCapacity = static_cast<int32_t>(RopeTable::kMaxTableBytes / (64 * sizeof(float)));
  RopeTable table(spec, 8, 2 * kCapacity);
  const auto frequencies = model::InverseFrequencies(spec);
  const std::vector<std::vector<int32_t>> steps = {
      {5}, {0, 1, 2}, {kCapacity - 1, 7, kCapacity, 5}, {kCapacity + 1000, 5, 3}};
  for (const auto& positions : steps) {
    table.Fill(positions);
    for (size_t row = 0; row < positions.size(); ++row) {
      for (size_t i = 0; i < frequencies.size(); ++i) {
        const double angle = positions[row] * frequencies[i];
        ASSERT_EQ(table.rows().cos[row * 32 + i], static_cast<float>(std::cos(angle)));
        ASSERT_EQ(table.rows().sin[row * 32 + i], static_cast<float>(std::sin(angle)));
      }
    }
  }
}

// A row of 32 cosines and 32 sines for each row of a step and each position, up to the limit.
TEST(RopeTable, TakesTheBytesItSays) {
  model::RopeSpec spec;
  spec.dims = 64;
  EXPECT_EQ(RopeTable::Bytes(spec, 8, 100), (8u + 100u) * 64 * sizeof(float));
  EXPECT_EQ(RopeTable::Bytes(spec, 8, 1 << 24),
            8u * 64 * sizeof(float) + RopeTable::kMaxTableBytes);
  EXPECT_EQ(RopeTable::Bytes(model::RopeSpec(), 8, 100), 0u);
}

// The prompt's length decides, not the position; both kinds may stand in a step.
TEST(RopeTable, LongPromptsTurnByTheirOwnDivisors) {
  model::RopeSpec spec;
  spec.dims = 4;
  spec.scaling = model::RopeScaling::kLongrope;
  spec.original_context = 64;
  spec.factor = 4;
  spec.short_divisors = {1, 2};
  spec.long_divisors = {3, 5};
  EXPECT_EQ(RopeTable::Bytes(spec, 8, 100), (8u + 2 * 100u) * 4 * sizeof(float));
  RopeTable table(spec, 8, 256);
  const std::vector<int32_t> positions = {10, 10, 200, 70}, prompts = {64, 65, 65, 10};
  table.Fill(positions, prompts);
  const double factor = model::AttentionFactor(spec);
  EXPECT_GT(factor, 1.0);
  for (size_t row = 0; row < positions.size(); ++row) {
    const auto& divisors = prompts[row] > 64 ? spec.long_divisors : spec.short_divisors;
    for (size_t i = 0; i < 2; ++i) {
      const double angle = positions[row] * std::pow(10000.0, -2.0 * static_cast<double>(i) / 4) /
                           static_cast<double>(divisors[i]);
      EXPECT_NEAR(table.rows().cos[row * 2 + i], factor * std::cos(angle), 1e-6);
      EXPECT_NEAR(table.rows().sin[row * 2 + i], factor * std::sin(angle), 1e-6);
    }
  }
  model::ModelSpec model;
  model.layers.resize(1);
  EXPECT_EQ(LongPrompt(model), 0);
  model.layers[0].attention.rope = spec;
  EXPECT_EQ(LongPrompt(model), 64);
}

// Dynamic scaling is that of the longest sequence there may be, for all.
TEST(RopeTable, DynamicScalingIsOneForAll) {
  model::RopeSpec spec;
  spec.dims = 8;
  spec.scaling = model::RopeScaling::kDynamic;
  spec.original_context = 64;
  spec.factor = 2;
  RopeTable shorter(spec, 1, 64), longer(spec, 1, 256);
  const int32_t position = 7;
  shorter.Fill({&position, 1});
  longer.Fill({&position, 1});
  const double theta = 10000.0 * std::pow(2.0 * 256 / 64 - 1, 8.0 / 6);
  EXPECT_NEAR(shorter.rows().cos[1], std::cos(7 * std::pow(10000.0, -0.25)), 1e-6);
  EXPECT_NEAR(longer.rows().cos[1], std::cos(7 * std::pow(theta, -0.25)), 1e-6);
}

// No rotation, no table.
TEST(RopeTable, NoDims) {
  RopeTable table(model::RopeSpec(), 8, 100);
  table.Fill(std::vector<int32_t>{1, 2, 3});
  EXPECT_EQ(table.rows().dims, 0);
}

}  // namespace
}  // namespace vivace
