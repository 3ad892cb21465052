#include "base/units.h"

#include <gtest/gtest.h>

namespace vivace {
namespace {

TEST(Units, Counts) {
  EXPECT_EQ(ParseCount("4096", "f").value(), 4096);
  EXPECT_EQ(ParseCount("32k", "f").value(), 32'000);
  EXPECT_EQ(ParseCount("32K", "f").value(), 32'768);
  EXPECT_EQ(ParseCount("1.5Mi", "f").value(), 3 << 19);
}

TEST(Units, Bytes) {
  EXPECT_EQ(ParseBytes("4GiB", "f").value(), int64_t{1} << 32);
  EXPECT_EQ(ParseBytes("4G", "f").value(), int64_t{1} << 32);
  EXPECT_EQ(ParseBytes("4GB", "f").value(), 4'000'000'000);
  EXPECT_EQ(ParseBytes("512", "f").value(), 512);
}

TEST(Units, RefusesWithTheFlagsName) {
  for (const char* bad :
       {"", "x", "-1", "1.5", "4 GiB", "1e400", "nan", "9999999T", "0x10", "4GiB"}) {
    const auto result = ParseCount(bad, "max-model-len");
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().field, "max-model-len");
    EXPECT_NE(result.error().message.find("--max-model-len"), std::string::npos);
  }
}

TEST(Units, FormatsForPeople) {
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(98'566'144), "94.0 MiB");
}

}  // namespace
}  // namespace vivace
