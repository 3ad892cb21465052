#include <gtest/gtest.h>

#include "base/limits.h"
#include "cli/bench_commands.h"

namespace vivace::cli {
namespace {

TEST(ParseCounts, TakesAList) {
  EXPECT_EQ(ParseCounts("1,8,2k", "decode").value(), (std::vector<int32_t>{1, 8, 2'000}));
  EXPECT_EQ(ParseCounts("512", "prompt").value(), std::vector<int32_t>{512});
  EXPECT_TRUE(ParseCounts("none", "prompt").value().empty());
}

TEST(ParseCounts, RefusesWhatIsNoList) {
  for (const char* text :
       {"", ",", "1,", ",1", "1,,2", "0", "-1", "x", "1 2", "4294967296", "none,1"}) {
    const auto counts = ParseCounts(text, "decode");
    ASSERT_FALSE(counts) << text;
    EXPECT_EQ(counts.error().field, "decode") << text;
  }
}

TEST(ParseCounts, IsBounded) {
  std::string text = "1";
  for (size_t i = 1; i < limits::kMaxBenchCases; ++i) text += ",1";
  EXPECT_EQ(ParseCounts(text, "decode").value().size(), limits::kMaxBenchCases);
  EXPECT_FALSE(ParseCounts(text + ",1", "decode"));
}

}  // namespace
}  // namespace vivace::cli
