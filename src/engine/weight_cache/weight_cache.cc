#include "engine/weight_cache/weight_cache.h"

#include <system_error>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread_priority.h"
#include "base/units.h"
#include "engine/weight_cache/cache_folder.h"
#include "engine/weight_cache/entry_file.h"

namespace vivace::weight_cache {
namespace {

constexpr int kNice = 19;

}  // namespace

Writer::Writer(std::string folder, std::string path, const EntryKey& key, uint64_t most_bytes,
               std::span<const std::byte> payload)
    : folder_(std::move(folder)),
      path_(std::move(path)),
      key_(key),
      most_bytes_(most_bytes),
      payload_(payload),
      thread_([this] { Run(); }) {}

Writer::~Writer() {
  stop_ = true;
  Wait();
}

void Writer::Wait() {
  if (thread_.joinable()) thread_.join();
}

void Writer::Run() const {
  LowerThreadPriority(kNice);  // requests come first
  Status written = MakeRoom(folder_, path_, kHeaderBytes + payload_.size(), most_bytes_);
  if (written) written = WriteEntry(path_, key_, payload_, stop_);
  if (written) {
    log::Info("packed weights kept for the next start",
              {{"file", path_}, {"size", FormatBytes(payload_.size())}});
  } else if (written.error().reason != "busy" && written.error().reason != "stopped") {
    log::Warn("packed weights not kept for the next start", {{"why", written.error().message}});
  }
}

WeightCache::WeightCache(std::string folder, uint64_t most_bytes, const model::ModelFile& file,
                         const kernels::BlockOps& ops, uint64_t plan_digest, uint64_t payload_bytes)
    : folder_(std::move(folder)),
      path_(EntryPath(folder_, file.path(), LayoutOf(ops.isa))),
      most_bytes_(most_bytes),
      key_{.pack_version = ops.pack_version,
           .layout = LayoutOf(ops.isa),
           .source = IdentityOf(file),
           .plan_digest = plan_digest,
           .payload_bytes = payload_bytes},
      seen_ns_(SeenNs(file)) {}

bool WeightCache::Read(std::span<std::byte> payload, ThreadPool& pool,
                       const LoadProgress& progress) const {
  const int64_t start = SteadyNanos();
  const Status read = ReadEntry(path_, key_, payload, pool, progress);
  if (read) {
    const double seconds = static_cast<double>(SteadyNanos() - start) / kNanosPerSecond;
    log::Info("packed weights read from the cache",
              {{"file", path_}, {"size", FormatBytes(payload.size())}, {"seconds", seconds}});
  } else if (read.error().reason != "no_entry") {
    log::Info("cached weights not used, packing again", {{"why", read.error().message}});
  }
  return read.has_value();
}

std::unique_ptr<Writer> WeightCache::Write(std::span<const std::byte> payload) const {
  if (!Settled(key_.source, seen_ns_)) {
    log::Info("packed weights not kept for the next start",
              {{"why", "the model file was changed a moment ago"}});
    return nullptr;
  }
  try {
    return std::make_unique<Writer>(folder_, path_, key_, most_bytes_, payload);
  } catch (const std::system_error& error) {  // no thread to be had
    log::Warn("packed weights not kept for the next start", {{"why", error.what()}});
    return nullptr;
  }
}

}  // namespace vivace::weight_cache
