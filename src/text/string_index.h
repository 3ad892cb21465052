// StringIndex: an immutable map from strings to the numbers of an array that holds them.
//
// Open addressing, 8 bytes a slot, one compare per hit. The hash is seeded per process, so a file
// cannot be written that makes it slow. The keys are the caller's and must outlive the index.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace vivace {

// Odd, random, the same for the life of the process.
uint64_t HashSeed();

class StringIndex {
 public:
  static constexpr int32_t kNone = -1;

  StringIndex() = default;
  // An index with room for all of `keys`; it holds none of them yet.
  explicit StringIndex(std::span<const std::string_view> keys);

  // Adds keys[number]; returns the number that an equal key has already, or kNone.
  int32_t Insert(int32_t number);

  int32_t Find(std::string_view key) const {
    if (slots_.empty()) return kNone;
    const uint64_t hash = Hash(key);
    const auto tag = static_cast<uint32_t>(hash);
    for (size_t i = hash >> shift_;; i = (i + 1) & mask_) {
      if (slots_[i].number == kNone) return kNone;
      if (slots_[i].tag == tag && keys_[slots_[i].number] == key) return slots_[i].number;
    }
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t number = kNone;
  };

  uint64_t Hash(std::string_view key) const {
    uint64_t hash = key.size() * seed_;
    const char* at = key.data();
    size_t left = key.size();
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      hash = Mix(hash ^ word);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < left; ++i) word = word << 8 | static_cast<unsigned char>(at[i]);
    return Mix(hash ^ word);
  }
  // Multiplies to 128 bits and folds: every bit of the word reaches the high and the low half.
  uint64_t Mix(uint64_t word) const {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(word ^ seed_) * 0x9E3779B97F4A7C15ull;
    const uint64_t folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    return folded * seed_;
  }

  std::span<const std::string_view> keys_;
  std::vector<Slot> slots_;
  uint64_t seed_ = 0;
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace vivace
