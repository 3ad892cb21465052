// EngineStats across threads: the engine thread writes, anyone reads, nobody waits. Each value is
// whole; values of one read may be of neighbouring steps.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "engine/engine.h"

namespace vivace {

class StatsBoard {
 public:
  void Write(const EngineStats& stats) {
    const auto words = std::bit_cast<Words>(stats);
    for (size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
  }

  EngineStats Read() const {
    Words words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    return std::bit_cast<EngineStats>(words);
  }

 private:
  using Words = std::array<int64_t, sizeof(EngineStats) / sizeof(int64_t)>;
  std::array<std::atomic<int64_t>, std::tuple_size_v<Words>> words_{};
};

}  // namespace vivace
