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

// No rotation, no table.
TEST(RopeTable, NoDims) {
  RopeTable table(model::RopeSpec(), 8, 100);
  table.Fill(std::vector<int32_t>{1, 2, 3});
  EXPECT_EQ(table.rows().dims, 0);
}

}  // namespace
}  // namespace vivace
