// One entry of the weight cache: a page of header and the weight arena's bytes behind it.
//
//   header    magic, format version, EntryKey, digest of the payload, digest of all before; zeros
//   payload   as the arena holds it; its digest is that of the digests of its chunks
//
// All but the zeros is checked at every read: the digests cost less than the copy out of the page
// cache. An entry appears whole or not at all (written beside its place, synced, renamed).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/load_progress.h"
#include "engine/weight_cache/entry_key.h"

namespace vivace::weight_cache {

inline constexpr size_t kHeaderBytes = 4096;
inline constexpr std::string_view kTempSuffix = ".tmp";  // of an entry being written
inline constexpr size_t kChunkBytes = 1u << 20;  // read and digested at once, while in the L2 cache

// Fills `payload` (key.payload_bytes) from the entry, in parallel, and marks the entry as used now.
// Reasons: no_entry, other_version, other_source, other_packing, damaged, unsafe_entry (someone
// else could change it), io_error. `payload` holds anything after a failure.
Status ReadEntry(const std::string& path, const EntryKey& key, std::span<std::byte> payload,
                 ThreadPool& pool, const LoadProgress& progress);

// Writes the entry through `path` + kTempSuffix, which it locks: of several writers one writes.
// Reasons: busy (another is writing), stopped, io_error. The folder exists. `stop` may come from
// any thread and ends the writing within a sync of kSyncBytes.
Status WriteEntry(const std::string& path, const EntryKey& key, std::span<const std::byte> payload,
                  const std::atomic<bool>& stop);

}  // namespace vivace::weight_cache
