#include "text/string_index.h"

#include <algorithm>
#include <bit>
#include <random>

namespace vivace {

uint64_t HashSeed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return (uint64_t{device()} << 32 | device()) | 1;
  }();
  return seed;
}

StringIndex::StringIndex(std::span<const std::string_view> keys) : keys_(keys), seed_(HashSeed()) {
  const size_t capacity = std::bit_ceil(std::max<size_t>(keys.size() * 2, 2));
  slots_.resize(capacity);
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
}

int32_t StringIndex::Insert(int32_t number) {
  const uint64_t hash = Hash(keys_[number]);
  const auto tag = static_cast<uint32_t>(hash);
  for (size_t i = hash >> shift_;; i = (i + 1) & mask_) {
    Slot& slot = slots_[i];
    if (slot.number == kNone) {
      slot = {tag, number};
      return kNone;
    }
    if (slot.tag == tag && keys_[slot.number] == keys_[number]) return slot.number;
  }
}

}  // namespace vivace
