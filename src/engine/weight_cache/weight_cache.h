// Packed weights kept on disk between starts of the server.
//
// A model's first start packs its weights and then, in the background and at the lowest priority,
// writes them to the user's cache folder; later starts read them back instead of packing. They are
// read into huge pages and not mapped: 4 KiB pages, which is what a mapped file gets, cost 12 % of
// decoding speed in a virtual machine (measure: the server under prctl(PR_SET_THP_DISABLE)).
// Nothing here is ever fatal: whatever is wrong with an entry or the folder, the weights are packed
// from the model file, and one line of the log says why. An entry of a model file that changed is
// never used.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/thread_pool.h"
#include "engine/load_progress.h"
#include "engine/weight_cache/entry_key.h"

namespace vivace::weight_cache {

// Writes an entry on a thread of its own. The payload must outlive it; its end stops the writing.
class Writer {
 public:
  Writer(std::string folder, std::string path, const EntryKey& key, uint64_t most_bytes,
         std::span<const std::byte> payload);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Wait();  // until it is written, or was given up

 private:
  void Run() const;

  const std::string folder_, path_;
  const EntryKey key_;
  const uint64_t most_bytes_;
  const std::span<const std::byte> payload_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The entry of one model file and tier. Used by one thread, at load.
class WeightCache {
 public:
  // `folder` is where entries lie, `most_bytes` what all of them may take.
  WeightCache(std::string folder, uint64_t most_bytes, const model::ModelFile& file,
              const kernels::BlockOps& ops, uint64_t plan_digest, uint64_t payload_bytes);

  // True if `payload` was filled; else it holds anything.
  bool Read(std::span<std::byte> payload, ThreadPool& pool, const LoadProgress& progress) const;
  // Null if the file was changed so lately that a further change might not show.
  std::unique_ptr<Writer> Write(std::span<const std::byte> payload) const;

 private:
  const std::string folder_, path_;
  const uint64_t most_bytes_;
  const EntryKey key_;
  const int64_t seen_ns_;  // when the file was as the key says
};

}  // namespace vivace::weight_cache
