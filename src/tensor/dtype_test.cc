#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace vivace {
namespace {

TEST(DType, TableIsInOrderAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DTypeInfo& info = Info(static_cast<DType>(i));
    EXPECT_EQ(static_cast<int>(info.dtype), i) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GT(info.block_elems, 0);
    EXPECT_GT(info.block_bytes, 0);
  }
}

TEST(DType, RowBytesCountsWholeBlocks) {
  EXPECT_EQ(RowBytes(Info(DType::kF32), 3), 12);
  EXPECT_EQ(RowBytes(Info(DType::kQ4_1), 576), 360);
  EXPECT_EQ(RowBytes(Info(DType::kQ8_0), 576), 612);
  EXPECT_EQ(RowBytes(Info(DType::kQ6_K), 512), 420);
}

}  // namespace
}  // namespace vivace
