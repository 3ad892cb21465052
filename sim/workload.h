// Random configurations and requests of a seed: small caches, small budgets, shared prefixes,
// salts, priorities, several choices, early stops, broken logits.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sched/scheduler.h"
#include "sim/fake_model.h"

namespace vivace::sim {

// std::mt19937_64 is the same everywhere, the standard's distributions are not: hence the modulo.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int32_t Between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Percent(int32_t chance) { return Between(1, 100) <= chance; }
  uint64_t Word() { return engine_(); }
  template <typename T>
  const T& Of(const std::vector<T>& values) {
    return values[static_cast<size_t>(Between(0, static_cast<int32_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

SchedulerConfig RandomConfig(Random* random);

// The hasher of a run: SHA-256, or four bits of it.
std::unique_ptr<BlockHasher> RandomHasher(Random* random);

// A request of one or more choices that can fit. Keys count up from *next_key. `texts` are prompts
// and outputs of earlier requests, which some prompts continue as the next turn of a chat does.
std::vector<SequenceSpec> RandomRequest(const SchedulerConfig& config,
                                        const std::vector<std::vector<TokenId>>& texts,
                                        Random* random, uint64_t group, SeqKey* next_key);

}  // namespace vivace::sim
