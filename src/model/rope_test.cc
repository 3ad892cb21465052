#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vivace::model {
namespace {

// What rope_oracle.py computed, independently, with numpy.
struct OracleCase {
  RopeScaling scaling;
  int32_t dims;
  float theta;
  float factor;
  int32_t original_context;
  float a, b;  // llama3: low and high frequency factors; yarn: beta fast and slow
  double attention_factor;
  std::vector<double> frequencies;
};

const std::vector<OracleCase>& Oracle() {
  static const std::vector<OracleCase> cases = {
#include "model/rope_oracle.inc"
  };
  return cases;
}

RopeSpec SpecOf(const OracleCase& c) {
  RopeSpec rope;
  rope.dims = c.dims;
  rope.theta = c.theta;
  rope.scaling = c.scaling;
  rope.factor = c.factor;
  rope.original_context = c.original_context;
  if (c.scaling == RopeScaling::kLlama3) {
    rope.low_freq_factor = c.a;
    rope.high_freq_factor = c.b;
  } else if (c.scaling == RopeScaling::kYarn) {
    rope.beta_fast = c.a;
    rope.beta_slow = c.b;
  }
  return rope;
}

TEST(Rope, AgreesWithTheOracle) {
  ASSERT_GE(Oracle().size(), 9u);
  for (const OracleCase& c : Oracle()) {
    const RopeSpec rope = SpecOf(c);
    const auto got = InverseFrequencies(rope);
    ASSERT_EQ(got.size(), c.frequencies.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i] / c.frequencies[i], 1.0, 1e-9)
          << "kind " << static_cast<int>(c.scaling) << ", dims " << c.dims << ", pair " << i;
    }
    EXPECT_NEAR(AttentionFactor(rope), c.attention_factor, 1e-9);
  }
}

TEST(Rope, EveryKindHasACase) {
  for (const auto kind :
       {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kLlama3, RopeScaling::kYarn}) {
    bool found = false;
    for (const OracleCase& c : Oracle()) found |= c.scaling == kind;
    EXPECT_TRUE(found) << static_cast<int>(kind);
  }
}

TEST(Rope, DivisorsDivide) {
  RopeSpec rope = SpecOf(Oracle()[0]);
  const auto plain = InverseFrequencies(rope);
  rope.freq_divisors.assign(plain.size(), 1.0f);
  rope.freq_divisors[3] = 8.0f;
  const auto divided = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_DOUBLE_EQ(divided[i], i == 3 ? plain[i] / 8.0 : plain[i]);
  }
}

// A GGUF of Llama 3.1 stores the llama3 scaling as divisors: both ways must say the same.
TEST(Rope, DivisorsCanExpressLlama3) {
  const OracleCase* llama3 = nullptr;
  for (const OracleCase& c : Oracle()) {
    if (c.scaling == RopeScaling::kLlama3) llama3 = &c;
  }
  ASSERT_NE(llama3, nullptr);
  RopeSpec rope = SpecOf(*llama3);
  rope.scaling = RopeScaling::kNone;
  const auto plain = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) {
    rope.freq_divisors.push_back(static_cast<float>(plain[i] / llama3->frequencies[i]));
  }
  const auto divided = InverseFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(divided[i] / llama3->frequencies[i], 1.0, 1e-6);
  }
}

TEST(Rope, AttentionFactorIsYarns) {
  RopeSpec rope;
  rope.dims = 64;
  rope.factor = 4.0f;
  EXPECT_EQ(AttentionFactor(rope), 1.0);
  rope.scaling = RopeScaling::kYarn;
  EXPECT_NEAR(AttentionFactor(rope), 0.1 * std::log(4.0) + 1.0, 1e-12);
  rope.attention_factor = 1.5f;
  EXPECT_EQ(AttentionFactor(rope), 1.5);
  EXPECT_EQ(YarnMscale(0.5), 1.0);
}

TEST(Rope, NoDimsNoFrequencies) { EXPECT_TRUE(InverseFrequencies(RopeSpec{}).empty()); }

}  // namespace
}  // namespace vivace::model
