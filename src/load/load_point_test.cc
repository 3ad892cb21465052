#include "load/load_point.h"

#include <gtest/gtest.h>

namespace vivace::load {
namespace {

using Ramp = ArrivalOptions::Ramp;

struct Named {
  LoadPoint load;
  const char *rate, *label;
};

TEST(LoadPoint, IsCalledByWhatItIs) {
  const Named cases[] = {
      {{}, "", "all at once"},
      {{.max_concurrency = 8}, "", "c=8"},
      {{.request_rate = 2.5}, "2.5/s", "rate 2.5/s"},
      {{.max_concurrency = 4, .request_rate = 2}, "2/s", "rate 2/s, c=4"},
      {{.ramp = Ramp::kLinear, .ramp_from = 1, .ramp_to = 20},
       "1 to 20/s linear",
       "rate 1 to 20/s linear"},
      {{.max_concurrency = 4, .ramp = Ramp::kExponential, .ramp_from = 1, .ramp_to = 20},
       "1 to 20/s exponential",
       "rate 1 to 20/s exponential, c=4"},
      {{.own_times = true}, "each at its own time", "trace"},
      {{.max_concurrency = 4, .own_times = true}, "each at its own time", "trace, c=4"},
  };
  for (const Named& named : cases) {
    EXPECT_EQ(RateText(named.load), named.rate);
    EXPECT_EQ(LabelOf(named.load), named.label);
  }
}

TEST(LoadPoint, RampsAreFoundByTheirNames) {
  for (const Ramp ramp : {Ramp::kNone, Ramp::kLinear, Ramp::kExponential}) {
    EXPECT_EQ(RampNamed(Name(ramp)), ramp);
  }
  EXPECT_EQ(RampNamed("steep"), Ramp::kNone);
}

}  // namespace
}  // namespace vivace::load
