#include "cli/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vivace::cli {
namespace {

TEST(Duration, HasUnits) {
  EXPECT_EQ(ParseDuration("90s", "budget", 1e6).value_or(0), 90);
  EXPECT_EQ(ParseDuration("10m", "budget", 1e6).value_or(0), 600);
  EXPECT_EQ(ParseDuration("1.5h", "budget", 1e6).value_or(0), 5400);
  EXPECT_EQ(ParseDuration("45", "budget", 1e6).value_or(0), 45);
}

TEST(Duration, OtherTextIsRefusedByTheFlag) {
  for (const char* text : {"", "m", "-3s", "0", "nan", "inf", "10d", "1e9", "5m3", "101"}) {
    const auto parsed = ParseDuration(text, "budget", 100);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("--budget is"));
  }
}

TEST(Duration, IsShownInTheLargestWholeUnit) {
  EXPECT_EQ(FormatDuration(600), "10m");
  EXPECT_EQ(FormatDuration(7200), "2h");
  EXPECT_EQ(FormatDuration(90), "90s");
  EXPECT_EQ(FormatDuration(0.5), "0.5s");
}

}  // namespace
}  // namespace vivace::cli
