// Microseconds to sample one row:  ninja sample_bench && src/sample/sample_bench
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "sample/sampler.h"

namespace vivace {
namespace {

struct Case {
  const char* name;
  SamplingParams params;
  float spread;  // standard deviation of the logits: 3 like a model's, 0.5 all but uniform
};

const Case kCases[] = {
    {"greedy", {.temperature = 0}, 3},
    {"temperature", {.temperature = 0.8f}, 3},
    {"top_k_50", {.temperature = 0.8f, .top_k = 50}, 3},
    {"top_p_0.95", {.temperature = 0.8f, .top_p = 0.95f}, 3},
    {"top_p_0.95_flat", {.temperature = 0.8f, .top_p = 0.95f}, 0.5f},
    {"top_k_5000_top_p_0.9_flat", {.temperature = 1, .top_k = 5000, .top_p = 0.9f}, 0.5f},
    {"min_p_0.05", {.temperature = 0.8f, .min_p = 0.05f}, 3},
    {"min_p_0.05_flat", {.temperature = 0.8f, .min_p = 0.05f}, 0.5f},
};

void Sample(benchmark::State& state, const Case& test, Isa isa, int32_t vocab) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, test.spread);
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (float& logit : logits) logit = normal(rng);
  SamplerState sampler;
  sampler.Bind(test.params, 0, std::vector<TokenId>{0}, 1, {}, 1 << 20);
  SampleScratch scratch(vocab);
  int32_t position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        sampler.Sample(kernels::GetVocabOps(isa), logits, ++position, &scratch));
  }
}

const bool kRegistered = [] {
  for (const Isa isa : kIsas) {
    if (!Supported(isa)) continue;
    for (const int32_t vocab : {49'152, 128'256}) {
      for (const Case& test : kCases) {
        const std::string name =
            std::string(test.name) + "/" + std::string(Name(isa)) + "/" + std::to_string(vocab);
        benchmark::RegisterBenchmark(name.c_str(), Sample, test, isa, vocab)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace vivace
