#include "kernels/fastest_isa.h"

#include <gtest/gtest.h>

#include "kernels/x86/bf16_rate.h"

namespace vivace::kernels {
namespace {

TEST(FastestIsa, IsATierThisMachineHasAndNoLessThanTheBestWithoutMeasuring) {
  const Isa fastest = FastestIsa();
  EXPECT_TRUE(Supported(fastest));
  EXPECT_GE(fastest, BestIsa());
  EXPECT_EQ(FastestIsa(), fastest);
}

TEST(FastestIsa, GoesWithTheMeasurement) {
  if (!Supported(Isa::kAvx512Bf16)) GTEST_SKIP() << "this machine lacks AVX512_BF16";
  const double rate = x86::Bf16DotRate();
  EXPECT_GT(rate, 0.25);  // known processors: 0.5 and 2
  EXPECT_LT(rate, 4.0);
  // Between the two there is no machine, so the choice must not hang on noise.
  const bool chosen = FastestIsa() == Isa::kAvx512Bf16;
  EXPECT_FALSE(rate < 0.8 && chosen) << rate;
  EXPECT_FALSE(rate > 1.7 && !chosen) << rate;
}

}  // namespace
}  // namespace vivace::kernels
