#include "cli/value_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_load_options.h"

namespace vivace::cli {
namespace {

using ::testing::ElementsAre;

TEST(ValueFlags, WordsBehindAListAreItsValues) {
  constexpr std::string_view kLists[] = {"goodput", "request-rate"};
  const std::vector<std::string> args = {"--goodput", "ttft:200",         "tpot:50", "--seed", "3",
                                         "word",      "--request_rate=1", "2",       "4"};
  EXPECT_THAT(RepeatFlags(args, kLists),
              ElementsAre("--goodput", "ttft:200", "--goodput", "tpot:50", "--seed", "3", "word",
                          "--request_rate=1", "--request_rate", "2", "--request_rate", "4"));
}

TEST(ValueFlags, NumbersAreInTheirRange) {
  double value = 1;
  const Flag flag = NumberFlag("x", "S", "", &value, 0, 10);
  EXPECT_TRUE(flag.store("2.5"));
  EXPECT_EQ(value, 2.5);
  for (const char* bad : {"-1", "11", "x", "", "nan", "1s"}) {
    const auto stored = flag.store(bad);
    ASSERT_FALSE(stored) << bad;
    EXPECT_NE(stored.error().message.find("--x is"), std::string::npos);
  }
  int32_t count = 1;
  EXPECT_TRUE(CountFlag("n", "", &count, 0, 5'000).store("2k"));
  EXPECT_EQ(count, 2'000);
  EXPECT_FALSE(CountFlag("n", "", &count, 0, 5'000).store("6k"));
}

TEST(ValueFlags, Rates) {
  EXPECT_THAT(*ParseRates("1,2.5, inf", "request-rate"), ElementsAre(1, 2.5, 0));
  for (const char* bad : {"", "0", "-1", "1e9", "nan", "fast"}) {
    EXPECT_FALSE(ParseRates(bad, "request-rate")) << bad;
  }
}

}  // namespace
}  // namespace vivace::cli
