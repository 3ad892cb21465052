// Counter-based random numbers: the n-th number of a key is a pure function, so a draw never
// depends on who else drew before it.
#pragma once

#include <array>
#include <cstdint>

namespace vivace {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
constexpr std::array<uint32_t, 4> Philox(uint64_t key, std::array<uint32_t, 4> counter) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// Uniform in [0, 1), 53 bits: the draw of `choice` at `position` of a sequence seeded with `seed`,
// the first one or, where that could not stay, a later `attempt`.
constexpr double UniformDraw(uint64_t seed, int32_t choice, int32_t position, int32_t attempt = 0) {
  const auto words = Philox(seed, {static_cast<uint32_t>(position), static_cast<uint32_t>(choice),
                                   static_cast<uint32_t>(attempt), 0});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace vivace
