// A fast 64-bit checksum (XXH3) against damage, not against forgers: whoever can write a user's
// cache is that user. Over 10 GB/s on one core. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vivace::weight_cache {

uint64_t Digest(std::span<const std::byte> bytes);

}  // namespace vivace::weight_cache
