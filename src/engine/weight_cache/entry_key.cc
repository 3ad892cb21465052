#include "engine/weight_cache/entry_key.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "engine/weight_cache/digest.h"

namespace vivace::weight_cache {
namespace {

constexpr size_t kSamplePages = 16;
constexpr size_t kSampleBytes = 4096;
constexpr int64_t kCoarsestTickNs = 2 * kNanosPerSecond;  // FAT

// Where the tensors begin: all before is metadata, vocabulary and the table of tensors.
size_t HeaderBytes(const formats::GgufFile& gguf) {
  const auto bytes = gguf.mapping().bytes();
  size_t header = bytes.size();
  for (const formats::GgufTensor& tensor : gguf.tensors()) {
    header = std::min(header, static_cast<size_t>(tensor.data.data() - bytes.data()));
  }
  return header;
}

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
  const MappedFile& mapping = file.gguf().mapping();
  const FileStamp& stamp = mapping.stamp();
  const size_t header = HeaderBytes(file.gguf());
  return {.size = stamp.size,
          .modified_ns = stamp.modified_ns,
          .changed_ns = stamp.changed_ns,
          .inode = stamp.inode,
          .header_digest = Digest(mapping.bytes().first(header)),
          .sample_digest = SampleDigest(mapping.bytes().subspan(header))};
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
