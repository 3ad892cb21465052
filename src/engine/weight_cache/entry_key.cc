#include "engine/weight_cache/entry_key.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "engine/weight_cache/digest.h"

namespace vivace::weight_cache {
namespace {

constexpr size_t kSamplePages = 16;
constexpr size_t kSampleBytes = 4096;
constexpr int64_t kCoarsestTickNs = 2 * kNanosPerSecond;  // FAT

uint64_t SampleDigest(std::span<const std::byte> bytes) {
  if (bytes.size() <= kSamplePages * kSampleBytes) return Digest(bytes);
  std::array<uint64_t, kSamplePages> digests;
  for (size_t i = 0; i < kSamplePages; ++i) {
    const size_t first = (bytes.size() - kSampleBytes) / (kSamplePages - 1) * i;
    digests[i] = Digest(bytes.subspan(first, kSampleBytes));
  }
  return Digest(std::as_bytes(std::span(digests)));
}

}  // namespace

Layout LayoutOf(Isa isa) { return isa == Isa::kReference ? Layout::kReference : Layout::kX86; }

SourceIdentity IdentityOf(const model::ModelFile& file) {
  SourceIdentity whole;
  std::vector<uint64_t> inodes, headers, samples;
  for (const model::FilePart& part : file.parts()) {
    const FileStamp& stamp = part.mapping->stamp();
    const auto bytes = part.mapping->bytes();
    whole.size += stamp.size;
    whole.modified_ns = std::max(whole.modified_ns, stamp.modified_ns);
    whole.changed_ns = std::max(whole.changed_ns, stamp.changed_ns);
    inodes.push_back(stamp.inode);
    headers.push_back(Digest(bytes.first(part.header_bytes)));
    samples.push_back(SampleDigest(bytes.subspan(part.header_bytes)));
  }
  const auto joined = [](const std::vector<uint64_t>& values) {
    return values.size() == 1 ? values[0] : Digest(std::as_bytes(std::span(values)));
  };
  whole.inode = joined(inodes);
  whole.header_digest = joined(headers);
  whole.sample_digest = joined(samples);
  return whole;
}

int64_t SeenNs(const model::ModelFile& file) {
  int64_t seen = std::numeric_limits<int64_t>::max();
  for (const model::FilePart& part : file.parts()) {
    seen = std::min(seen, part.mapping->stamp().seen_ns);
  }
  return seen;
}

bool Settled(const SourceIdentity& source, int64_t seen_ns) {
  // A time in the future was set, or the clock was: a later change brings another.
  const auto apart = [seen_ns](int64_t time) {
    return time > seen_ns || seen_ns - time > kCoarsestTickNs;
  };
  return apart(source.changed_ns) && apart(source.modified_ns);
}

bool SameSource(const EntryKey& a, const EntryKey& b) {
  return std::memcmp(&a.source, &b.source, sizeof(a.source)) == 0;
}

bool SamePacking(const EntryKey& a, const EntryKey& b) {
  return a.pack_version == b.pack_version && a.layout == b.layout &&
         a.plan_digest == b.plan_digest && a.payload_bytes == b.payload_bytes;
}

}  // namespace vivace::weight_cache
