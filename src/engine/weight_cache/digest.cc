#include "engine/weight_cache/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vivace::weight_cache {

uint64_t Digest(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace vivace::weight_cache
