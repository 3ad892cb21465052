// Strong ids: plain integers that cannot be mixed up.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace vivace {

template <typename Tag, typename Rep>
struct StrongId {
  Rep value = Rep(-1);

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  constexpr bool valid() const { return value != Rep(-1); }
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

using TokenId = int32_t;                                    // index into the vocabulary
using BlockId = StrongId<struct BlockIdTag, int32_t>;       // index of a KV block in its pool
using SeqSlot = StrongId<struct SeqSlotTag, int32_t>;       // index of a running sequence
using RequestId = StrongId<struct RequestIdTag, uint64_t>;  // unique in an engine's life

}  // namespace vivace

template <typename Tag, typename Rep>
struct std::hash<vivace::StrongId<Tag, Rep>> {
  size_t operator()(const vivace::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
