#include "sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "base/cpu.h"
#include "base/limits.h"
#include "base/rng.h"
#include "sample/logprobs.h"

namespace vivace {
namespace {

std::vector<Isa> Tiers() {
  std::vector<Isa> tiers;
  for (const Isa isa : kIsas) {
    if (Supported(isa)) tiers.push_back(isa);
  }
  return tiers;
}

class SamplerTest : public ::testing::TestWithParam<Isa> {
 protected:
  const kernels::VocabOps& ops() const { return kernels::GetVocabOps(GetParam()); }

  std::optional<TokenId> Draw(const SamplingParams& params, std::vector<float> logits,
                              int32_t position = 5, std::vector<TokenId> history = {0},
                              int32_t prompt_len = 1, std::vector<TokenId> eos = {}) const {
    SamplerState state;
    state.Bind(params, 0, history, prompt_len, eos, 64);
    SampleScratch scratch(static_cast<int32_t>(logits.size()));
    const std::vector<float> before = logits;
    const auto token = state.Sample(ops(), logits, position, &scratch);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), logits.begin(), [](float a, float b) {
      return a == b || (a != a && b != b);
    })) << "edits were not taken back";
    return token;
  }

  // The set of tokens drawn at many positions.
  std::set<TokenId> Support(const SamplingParams& params, const std::vector<float>& logits) const {
    std::set<TokenId> drawn;
    for (int32_t position = 0; position < 3000; ++position) {
      drawn.insert(*Draw(params, logits, position));
    }
    return drawn;
  }

  static std::vector<float> Logits(const std::vector<double>& probabilities) {
    std::vector<float> logits;
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    return logits;
  }

  static std::vector<float> RandomLogits(size_t count, uint32_t seed, float spread = 4) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> logits(count);
    for (float& x : logits) x = normal(rng);
    return logits;
  }
};

INSTANTIATE_TEST_SUITE_P(Tiers, SamplerTest, ::testing::ValuesIn(Tiers()), [](const auto& tier) {
  std::string name(Name(tier.param));
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(SamplerTest, GreedyTakesTheFirstOfTheGreatest) {
  std::vector<float> logits = RandomLogits(49'152, 1);
  logits[100] = logits[40'000] = 50;
  EXPECT_EQ(Draw({.temperature = 0}, logits), 100);
  logits[100] = std::nextafter(50.0f, 0.0f);  // a weight of one as well, and yet not the greatest
  EXPECT_EQ(Draw({.temperature = 2, .top_k = 1}, logits), 40'000);
}

// What may be left to the head's argmax: exactly the rows on which nothing else bears.
TEST(SamplerStateTest, TakesArgmaxOnlyIfNothingElseBears) {
  const auto takes = [](const SamplingParams& params, std::vector<TokenId> eos = {2}) {
    SamplerState state;
    state.Bind(params, 0, std::vector<TokenId>{0, 1}, 2, eos, 64);
    return state.TakesArgmax();
  };
  EXPECT_TRUE(takes({.temperature = 0}));
  EXPECT_TRUE(takes({.temperature = 1, .top_k = 1}));
  EXPECT_TRUE(takes({.temperature = 0, .top_p = 0.5f, .min_p = 0.5f}));
  EXPECT_FALSE(takes({.temperature = 1}));
  EXPECT_FALSE(takes({.temperature = 1, .top_k = 2}));
  EXPECT_FALSE(takes({.temperature = 0, .presence_penalty = 1}));
  EXPECT_FALSE(takes({.temperature = 0, .frequency_penalty = 1}));
  EXPECT_FALSE(takes({.temperature = 0, .repetition_penalty = 1.1f}));
  EXPECT_FALSE(takes({.temperature = 0, .logit_bias = {{1, 1.0f}}}));
  EXPECT_FALSE(takes({.temperature = 0, .min_tokens = 1}));
  EXPECT_TRUE(takes({.temperature = 0, .min_tokens = 1}, {}));
  EXPECT_FALSE(takes({.temperature = 0, .allowed_token_ids = {1}}));
  EXPECT_FALSE(takes({.temperature = 0, .bad_words = {{1, 2}}}));

  SamplerState state;
  const SamplingParams params{.temperature = 0, .min_tokens = 2};
  state.Bind(params, 0, std::vector<TokenId>{0, 1}, 1, std::vector<TokenId>{2}, 64);
  EXPECT_FALSE(state.TakesArgmax()) << "one token so far, and EOS is banned";
  state.Accept(1);
  EXPECT_TRUE(state.TakesArgmax());
}

// Bug case 2.2: every road to greedy is greedy.
TEST_P(SamplerTest, EdgesAreGreedy) {
  const std::vector<float> logits = RandomLogits(1000, 2);
  const auto greedy = Draw({.temperature = 0}, logits);
  EXPECT_EQ(Draw({.temperature = 1e-30f}, logits), greedy);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(Draw({.temperature = 1.5f, .top_p = 1e-9f, .seed = seed}, logits), greedy);
    EXPECT_EQ(Draw({.temperature = 1.5f, .top_k = 1, .seed = seed}, logits), greedy);
    EXPECT_EQ(Draw({.temperature = 1.5f, .min_p = 1.0f, .seed = seed}, logits), greedy);
  }
}

TEST_P(SamplerTest, NucleusKeepsTheTokenThatCrossesP) {
  const auto logits = Logits({0.1, 0.2, 0.3, 0.4});
  EXPECT_EQ(Support({.top_p = 0.6f}, logits), (std::set<TokenId>{2, 3}));
  EXPECT_EQ(Support({.top_p = 0.3f}, logits), (std::set<TokenId>{3}));
  EXPECT_EQ(Support({.top_p = 0.95f}, logits), (std::set<TokenId>{0, 1, 2, 3}));
}

TEST_P(SamplerTest, TopKAndMinPKeepTheirSets) {
  const auto logits = Logits({0.1, 0.2, 0.3, 0.4});
  EXPECT_EQ(Support({.top_k = 3}, logits), (std::set<TokenId>{1, 2, 3}));
  EXPECT_EQ(Support({.top_k = 100}, logits).size(), 4u);
  EXPECT_EQ(Support({.min_p = 0.6f}, logits), (std::set<TokenId>{2, 3}));
  // top_p is of what top_k left: 0.4 / 0.7 already reaches a half.
  EXPECT_EQ(Support({.top_k = 2, .top_p = 0.5f}, logits), (std::set<TokenId>{3}));
}

TEST_P(SamplerTest, FrequenciesFollowTheDistribution) {
  const std::vector<double> wanted = {0.05, 0.15, 0.3, 0.5};
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_k = 4, .top_p = 0.9999f},
        SamplingParams{.min_p = 0.01f}}) {
    std::vector<int> counts(wanted.size());
    constexpr int kDraws = 20'000;
    for (int32_t position = 0; position < kDraws; ++position) {
      ++counts[static_cast<size_t>(*Draw(params, Logits(wanted), position))];
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double sigma = std::sqrt(kDraws * wanted[i] * (1 - wanted[i]));
      EXPECT_NEAR(counts[i], kDraws * wanted[i], 5 * sigma);
    }
  }
}

// Candidates far below the maximum must be found when the distribution is flat.
TEST_P(SamplerTest, CutsAgreeWithASortedVocabulary) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const std::vector<float> logits = RandomLogits(3000, seed, seed % 2 == 0 ? 0.5f : 6.0f);
    const float temperature = seed % 3 == 0 ? 0.3f : 2.5f;
    std::vector<TokenId> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    double total = 0;
    std::vector<double> weights;
    for (const TokenId id : order) {
      weights.push_back(std::exp(
          (logits[static_cast<size_t>(id)] - logits[static_cast<size_t>(order[0])]) / temperature));
      total += weights.back();
    }
    const float top_p = 0.2f + 0.02f * static_cast<float>(seed);
    size_t kept = 0;
    for (double mass = 0; mass < top_p * total; ++kept) mass += weights[kept];
    std::vector<int> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      rank[static_cast<size_t>(order[i])] = static_cast<int>(i);
    for (int32_t position = 0; position < 200; ++position) {
      const auto token =
          Draw({.temperature = temperature, .top_p = top_p, .seed = seed}, logits, position);
      EXPECT_LE(rank[static_cast<size_t>(*token)],
                static_cast<int>(kept));  // one of slack: rounding
      const auto narrow =
          Draw({.temperature = temperature, .top_k = 7, .seed = seed}, logits, position);
      EXPECT_LT(rank[static_cast<size_t>(*narrow)], 7);
    }
  }
}

// What is left of a row by the definition, with the sorted vocabulary this code avoids: weights of
// the kept tokens by id, zero for the others.
std::vector<double> KeptWeights(const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](TokenId id) { return logits[static_cast<size_t>(id)]; };
  std::ranges::stable_sort(order, std::greater(), logit);
  const auto weight = [&](TokenId id) {
    return std::exp((logit(id) - double{logit(order[0])}) / params.temperature);
  };
  const auto total = [&] {
    return std::accumulate(order.begin(), order.end(), 0.0,
                           [&](double sum, TokenId id) { return sum + weight(id); });
  };
  std::erase_if(order, [&](TokenId id) { return weight(id) < params.min_p; });
  if (params.top_k > 0 && params.top_k < static_cast<int32_t>(order.size())) {
    order.resize(static_cast<size_t>(params.top_k));
  }
  const double wanted = params.top_p * total();
  std::vector<double> kept(logits.size());
  double mass = 0;
  for (const TokenId id : order) {
    if (params.top_p < 1 && mass >= wanted) break;
    mass += kept[static_cast<size_t>(id)] = weight(id);
  }
  return kept;
}

// The drawn token stands where the cumulative weights of what is kept, by id, reach u: on steep and
// flat rows, with many equal logits, and for any count of candidates.
TEST_P(SamplerTest, DrawsInvertTheCumulativeWeights) {
  std::vector<std::vector<float>> rows = {RandomLogits(5000, 77, 1.0f),
                                          RandomLogits(5011, 78, 0.1f), RandomLogits(501, 79, 9)};
  rows.push_back(rows[0]);
  for (float& logit : rows.back()) logit = std::round(logit * 2) / 2;
  rows.emplace_back(2500, 1.25f);
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_p = 0.3f}, SamplingParams{.top_p = 0.9f},
        SamplingParams{.temperature = 3, .top_p = 0.999f}, SamplingParams{.top_k = 40},
        SamplingParams{.top_k = 2000}, SamplingParams{.top_k = 2000, .top_p = 0.5f},
        SamplingParams{.min_p = 0.05f}, SamplingParams{.top_p = 0.7f, .min_p = 0.01f},
        SamplingParams{.top_k = 100'000, .top_p = 0.5f, .min_p = 0.2f}}) {
    for (size_t row = 0; row < rows.size(); ++row) {
      SCOPED_TRACE(::testing::Message() << "row " << row << " top_p " << params.top_p << " top_k "
                                        << params.top_k << " min_p " << params.min_p);
      const std::vector<double> kept = KeptWeights(params, rows[row]);
      std::vector<double> reached(kept.size());
      std::partial_sum(kept.begin(), kept.end(), reached.begin());
      const double mass = reached.back();
      // A token more or less at the edge of the cut, and the rounding of weights.
      const double slack = 1 + 2e-5 * mass;
      for (int32_t position = 0; position < 12; ++position) {
        const auto token = Draw(params, rows[row], position);
        ASSERT_TRUE(token);
        const double at = UniformDraw(params.seed, 0, position) * mass;
        const auto here = static_cast<size_t>(*token);
        ASSERT_LE(reached[here] - kept[here] - slack, at);
        ASSERT_GE(reached[here] + slack, at);
      }
    }
  }
}

// Weights equal to the last bit at the cut: the lowest ids stay.
TEST_P(SamplerTest, OfEqualTokensTheFirstAreKept) {
  std::vector<float> logits(3000, 1.0f);
  logits[2500] = 2.0f;
  std::set<TokenId> wanted = {2500};
  for (TokenId id = 0; id < 6; ++id) wanted.insert(id);
  EXPECT_EQ(Support({.top_k = 7}, logits), wanted);
  EXPECT_EQ(Support({.top_p = 1.0f}, {0, 0, 0}), (std::set<TokenId>{0, 1, 2}));
  EXPECT_EQ(Support({.top_p = 0.6f}, {0, 0, 0}), (std::set<TokenId>{0, 1}));
}

TEST_P(SamplerTest, SameSeedAndPositionSameToken) {
  const std::vector<float> logits = RandomLogits(1000, 3, 1);
  const SamplingParams params{.temperature = 1.5f, .seed = 9};
  EXPECT_EQ(Draw(params, logits, 3), Draw(params, logits, 3));
  std::set<TokenId> drawn;
  for (int32_t position = 0; position < 20; ++position)
    drawn.insert(*Draw(params, logits, position));
  EXPECT_GT(drawn.size(), 10u);
}

TEST_P(SamplerTest, BiasPenaltiesAndBans) {
  const std::vector<float> logits = {1, 2, 3, 2.5f};
  EXPECT_EQ(Draw({.temperature = 0, .logit_bias = {{0, 100.0f}}}, logits), 0);
  EXPECT_EQ(Draw({.temperature = 0, .logit_bias = {{2, -100.0f}}}, logits), 3);
  // Presence and frequency count output only; repetition counts the prompt as well.
  EXPECT_EQ(Draw({.temperature = 0, .presence_penalty = 1}, logits, 5, {2}, 1), 2);
  EXPECT_EQ(Draw({.temperature = 0, .presence_penalty = 1}, logits, 5, {0, 2}, 1), 3);
  EXPECT_EQ(Draw({.temperature = 0, .frequency_penalty = 0.3f}, logits, 5, {0, 2}, 1), 2);
  EXPECT_EQ(Draw({.temperature = 0, .frequency_penalty = 0.3f}, logits, 5, {0, 2, 2}, 1), 3);
  EXPECT_EQ(Draw({.temperature = 0, .repetition_penalty = 2}, logits, 5, {2}, 1), 3);
  EXPECT_EQ(Draw({.temperature = 0, .min_tokens = 2}, logits, 5, {0, 1}, 1, {2}), 3);
  EXPECT_EQ(Draw({.temperature = 0, .min_tokens = 1}, logits, 5, {0, 1}, 1, {2}), 2);
  EXPECT_EQ(Draw({.temperature = 0, .min_tokens = 2, .stop_token_ids = {2}}, logits, 5, {0}, 1), 3);
}

// A mask of a few tokens.
std::vector<uint32_t> MaskOf(size_t vocab, std::initializer_list<TokenId> tokens) {
  std::vector<uint32_t> mask(MaskWords(static_cast<int32_t>(vocab)));
  for (const TokenId token : tokens) mask[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
  return mask;
}

TEST_P(SamplerTest, AMaskLeavesItsTokensOnly) {
  std::vector<float> logits = RandomLogits(1000, 11);
  logits[3] = 60;
  logits[40] = 50;
  logits[999] = 49;
  const auto drawn = [&](const SamplingParams& params, const std::vector<uint32_t>& mask,
                         int32_t position) {
    SamplerState state;
    state.Bind(params, 0, std::vector<TokenId>{0}, 1, {}, 64);
    SampleScratch scratch(1000);
    const std::vector<float> before = logits;
    const auto token = state.Sample(ops(), logits, position, &scratch, mask);
    EXPECT_EQ(logits, before);
    return token.value_or(-1);
  };
  EXPECT_EQ(drawn({.temperature = 0}, MaskOf(1000, {7, 40, 999}), 5), 40);
  EXPECT_EQ(drawn({.temperature = 0}, MaskOf(1000, {7, 999}), 5), 999);
  EXPECT_EQ(drawn({.temperature = 0}, MaskOf(1000, {7}), 5), 7);
  EXPECT_EQ(
      drawn({.temperature = 0, .logit_bias = {{3, 100.0f}, {7, 90.0f}}}, MaskOf(1000, {7, 999}), 5),
      7)
      << "a bias does not bring back what the mask forbids";
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 100}, SamplingParams{.temperature = 100, .top_k = 5},
        SamplingParams{.temperature = 100, .top_p = 0.999f},
        SamplingParams{.temperature = 100, .min_p = 1e-6f}}) {
    std::set<TokenId> seen;
    for (int32_t i = 0; i < 300; ++i) seen.insert(drawn(params, MaskOf(1000, {7, 40, 999}), i));
    EXPECT_EQ(seen, (std::set<TokenId>{7, 40, 999}));
  }
  EXPECT_EQ(drawn({.temperature = 0}, MaskOf(1000, {}), 5), -1) << "nothing may be drawn";
}

// Attempts are independent: tokens drawn until one of a few comes are drawn as if only those were
// there.
TEST_P(SamplerTest, DrawingAgainKeepsTheDistribution) {
  std::vector<float> logits = Logits({0.6, 0.2, 0.1, 0.1});
  SamplerState state;
  state.Bind({}, 0, std::vector<TokenId>{0}, 1, {}, 64);
  SampleScratch scratch(4);
  std::vector<int> counts(4);
  for (int32_t position = 0; position < 4000; ++position) {
    std::vector<uint32_t> mask = MaskOf(4, {0, 1, 2, 3});
    TokenId token = -1;
    for (int32_t attempt = 0; token < 1; ++attempt) {  // 0 cannot stay
      token = *state.Sample(ops(), logits, position, &scratch, mask, attempt);
      if (token == 0) TakeFromMask(mask, token);
    }
    ++counts[static_cast<size_t>(token)];
  }
  EXPECT_NEAR(counts[1], 2000, 130);  // four standard deviations
  EXPECT_NEAR(counts[2], 1000, 110);
}

// What the mask leaves is drawn as if the other logits had never been there.
TEST_P(SamplerTest, AMaskIsARowWithoutTheOthers) {
  const std::vector<float> logits = RandomLogits(777, 12);
  std::vector<float> without = logits;
  std::vector<uint32_t> mask(MaskWords(777), ~0u);
  for (TokenId token = 0; token < 777; token += 3) {
    mask[static_cast<size_t>(token) / 32] &= ~(1u << (token % 32));
    without[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
  for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.top_p = 0.9f}}) {
    for (int32_t position = 0; position < 200; ++position) {
      SamplerState state;
      state.Bind(params, 0, std::vector<TokenId>{0}, 1, {}, 64);
      SampleScratch scratch(777);
      std::vector<float> row = logits;
      EXPECT_EQ(state.Sample(ops(), row, position, &scratch, mask),
                Draw(params, without, position));
    }
  }
}

TEST_P(SamplerTest, ANanIsSeenBehindAMask) {
  std::vector<float> logits = RandomLogits(100, 4);
  logits[77] = NAN;
  SamplerState state;
  state.Bind({}, 0, std::vector<TokenId>{0}, 1, {}, 64);
  SampleScratch scratch(100);
  EXPECT_EQ(state.Sample(ops(), logits, 5, &scratch, MaskOf(100, {1, 2})), std::nullopt);
}

TEST_P(SamplerTest, AllowedTokenIds) {
  const std::vector<float> logits = {1, 2, 3, 2.5f};
  EXPECT_EQ(Draw({.temperature = 0, .allowed_token_ids = {0, 3}}, logits), 3);
  EXPECT_EQ(Draw({.temperature = 0, .allowed_token_ids = {0}}, logits), 0);
  EXPECT_EQ(Support({.allowed_token_ids = {0, 1}}, logits), (std::set<TokenId>{0, 1}));
  const auto with_mask = [&](std::initializer_list<TokenId> mask) {
    SamplerState state;
    state.Bind({.temperature = 0, .allowed_token_ids = {0, 1}}, 0, std::vector<TokenId>{0}, 1, {},
               64);
    SampleScratch scratch(4);
    std::vector<float> row = logits;
    return state.Sample(ops(), row, 5, &scratch, MaskOf(4, mask));
  };
  EXPECT_EQ(with_mask({1, 2}), 1) << "both masks hold";
  EXPECT_EQ(with_mask({2, 3}), 2) << "the constraint wins where nothing would be left";
}

TEST_P(SamplerTest, BadWordsLookAtTheOutputsTail) {
  const std::vector<float> logits = {1, 2, 3, 2.5f};
  const SamplingParams params{.temperature = 0, .bad_words = {{1, 2}, {0, 1, 2}}};
  EXPECT_EQ(Draw(params, logits, 5, {0, 3}, 1), 2);
  EXPECT_EQ(Draw(params, logits, 5, {0, 1}, 1), 3) << "1 is output";
  EXPECT_EQ(Draw(params, logits, 5, {0, 1}, 2), 2) << "1 is of the prompt";
  EXPECT_EQ(Draw({.temperature = 0, .bad_words = {{2}}}, logits), 3);
  EXPECT_EQ(Draw({.temperature = 0, .bad_words = {{3, 1, 2}}}, logits, 5, {0, 3, 1}, 1), 3);
  EXPECT_EQ(Draw({.temperature = 0, .bad_words = {{3, 1, 2}}}, logits, 5, {0, 1}, 1), 2);
  // Over several draws, too: 2 2 may not become 2 2 2.
  SamplerState state;
  state.Bind({.temperature = 0, .bad_words = {{2, 2, 2}}}, 0, std::vector<TokenId>{0}, 1, {}, 64);
  SampleScratch scratch(4);
  std::vector<float> row = logits;
  std::vector<TokenId> drawn;
  for (int32_t i = 0; i < 7; ++i) {
    drawn.push_back(*state.Sample(ops(), row, i, &scratch));
    state.Accept(drawn.back());
  }
  EXPECT_EQ(drawn, (std::vector<TokenId>{2, 2, 3, 2, 2, 3, 2}));
}

TEST_P(SamplerTest, BansGiveWayWhereNothingWouldBeLeft) {
  const std::vector<float> logits = {1, 2, 3, 2.5f};
  EXPECT_EQ(
      Draw({.temperature = 0, .allowed_token_ids = {2}, .min_tokens = 5}, logits, 5, {0}, 1, {2}),
      2);
  EXPECT_EQ(Draw({.temperature = 0, .allowed_token_ids = {2, 0}, .min_tokens = 5}, logits, 5, {0},
                 1, {2}),
            0);
  EXPECT_EQ(Draw({.temperature = 0, .bad_words = {{0}, {1}, {2}, {3}}}, logits), 2);
}

// Output that was not drawn counts as if it had been.
TEST_P(SamplerTest, FollowsOutputThatWasNotDrawn) {
  const std::vector<float> logits = {1, 2, 3, 2.5f};
  const SamplingParams params{
      .temperature = 0, .frequency_penalty = 0.3f, .bad_words = {{1, 3}}, .max_tokens = 10};
  SamplerState state;
  state.Bind(params, 0, std::vector<TokenId>{0, 1}, 1, {}, 64);
  EXPECT_EQ(state.remaining(), 9);
  state.Follow(0, std::vector<TokenId>{0, 1});
  EXPECT_EQ(state.remaining(), 9) << "known";
  state.Follow(1, std::vector<TokenId>{1, 2, 2, 1});
  EXPECT_EQ(state.remaining(), 6);
  SampleScratch scratch(4);
  std::vector<float> row = logits;
  const auto drawn = state.Sample(ops(), row, 5, &scratch);
  EXPECT_EQ(drawn, Draw(params, logits, 5, {0, 1, 2, 2, 1}, 1));
  EXPECT_EQ(state.remaining(), 6) << "it may be drawn again";
  state.Accept(*drawn);
  EXPECT_EQ(state.remaining(), 5);
}

TEST_P(SamplerTest, NonFiniteRowsAreRefused) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {NAN, inf}) {
    std::vector<float> logits = RandomLogits(100, 4);
    logits[77] = bad;
    EXPECT_EQ(Draw({.temperature = 0}, logits), std::nullopt);
    EXPECT_EQ(Draw({.temperature = 1}, logits), std::nullopt);
    logits[77] = -inf;
    EXPECT_NE(Draw({.temperature = 1}, logits), std::nullopt);
  }
  EXPECT_EQ(Draw({.temperature = 1}, std::vector<float>(10, -inf)), std::nullopt);
}

TEST_P(SamplerTest, ABannedTokenIsNeverDrawn) {
  std::vector<float> logits(200, -std::numeric_limits<float>::infinity());
  logits[150] = logits[151] = -1000;
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_k = 50}, SamplingParams{.top_p = 0.99f}}) {
    EXPECT_EQ(Support(params, logits), (std::set<TokenId>{150, 151}));
  }
}

TEST_P(SamplerTest, LogprobsAgreeWithTheDefinition) {
  const std::vector<float> logits = RandomLogits(5000, 8);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  std::vector<TokenLogprob> top(5);
  LogprobRow row;
  ASSERT_TRUE(ComputeLogprobs(ops(), logits, 1234, top, &row));
  EXPECT_NEAR(row.chosen.logprob, logits[1234] - std::log(sum), 1e-5);
  EXPECT_EQ(row.rank, 1 + std::count_if(logits.begin(), logits.end(),
                                        [&](float x) { return x > logits[1234]; }));
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  ASSERT_EQ(row.num_top, 5);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(logits[static_cast<size_t>(top[i].token)], sorted[i]);
    EXPECT_NEAR(top[i].logprob, sorted[i] - std::log(sum), 1e-5);
  }
}

TEST_P(SamplerTest, LogprobsOfATinyVocabularyAndOfNan) {
  std::vector<TokenLogprob> top(20);
  LogprobRow row;
  ASSERT_TRUE(ComputeLogprobs(ops(), std::vector<float>{1, 1, 0}, 1, top, &row));
  EXPECT_EQ(row.num_top, 3);
  EXPECT_EQ(top[0].token, 0);
  EXPECT_EQ(top[1].token, 1);
  EXPECT_EQ(row.rank, 1);
  EXPECT_FALSE(ComputeLogprobs(ops(), std::vector<float>{1, NAN}, 0, top, &row));
}

TEST(SamplingParamsTest, RangesAtTheLimitAndBeyond) {
  constexpr int32_t kVocab = 100;
  EXPECT_TRUE(Validate(SamplingParams{}, kVocab));
  const auto field = [](SamplingParams params) { return Validate(params, kVocab).error().field; };
  EXPECT_EQ(field({.temperature = -0.1f}), "temperature");
  EXPECT_EQ(field({.temperature = NAN}), "temperature");
  EXPECT_EQ(field({.temperature = 101}), "temperature");
  EXPECT_EQ(field({.top_p = 0}), "top_p");
  EXPECT_EQ(field({.presence_penalty = 2.1f}), "presence_penalty");
  EXPECT_EQ(field({.repetition_penalty = 0}), "repetition_penalty");
  EXPECT_EQ(field({.repetition_penalty = std::nextafter(0.01f, 0.0f)}), "repetition_penalty");
  EXPECT_TRUE(Validate(SamplingParams{.repetition_penalty = 0.01f}, kVocab));
  EXPECT_EQ(field({.logit_bias = {{100, 1.0f}}}), "logit_bias");
  EXPECT_EQ(field({.logit_bias = {{1, 101.0f}}}), "logit_bias");
  EXPECT_EQ(field({.stop_token_ids = {-1}}), "stop_token_ids");
  EXPECT_EQ(field({.allowed_token_ids = {100}}), "allowed_token_ids");
  EXPECT_EQ(field({.bad_words = {{1}, {}}}), "bad_words");
  EXPECT_EQ(field({.bad_words = {{1, 100}}}), "bad_words");
  using Words = std::vector<std::vector<TokenId>>;
  const auto words = [&](size_t count, size_t tokens) {
    return Validate({.bad_words = Words(count, std::vector<TokenId>(tokens, 1))}, kVocab)
        .has_value();
  };
  EXPECT_TRUE(words(limits::kMaxBadWords, limits::kMaxBadWordTokens));
  EXPECT_FALSE(words(limits::kMaxBadWords + 1, 1));
  EXPECT_THAT(Validate({.bad_words = {std::vector<TokenId>(66, 1)}}, kVocab).error().message,
              ::testing::HasSubstr("a word of 66 tokens; at most 64"));
  EXPECT_FALSE(words(1, limits::kMaxBadWordTokens + 1));
  EXPECT_EQ(field({.logprobs = 21}), "logprobs");
  EXPECT_TRUE(Validate(
      SamplingParams{.temperature = 100, .logit_bias = {{99, 100.0f}}, .logprobs = 20}, kVocab));
}

}  // namespace
}  // namespace vivace
