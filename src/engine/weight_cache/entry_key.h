// What an entry of the weight cache must agree with to be used: the bytes it was packed from, the
// way they were packed, and what the model's recipe wanted of them. Compared as a whole, never
// trusted: sizes and places always come from the model file at hand, so an entry has no offset to
// lie about.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kernels/block_ops.h"
#include "model/loaded_model.h"

namespace vivace::weight_cache {

// Tiers that pack alike share entries.
enum class Layout : uint32_t { kReference, kX86 };
Layout LayoutOf(Isa isa);

// The state of a model's file, or of its files together. The times and the inode catch whatever a
// program did to the file; the two digests catch another file in its place where a file system
// keeps no such record: all that stands before the tensors, and a few pages spread over them.
struct SourceIdentity {
  uint64_t size = 0;        // of all files
  int64_t modified_ns = 0;  // the last one's
  int64_t changed_ns = 0;   // likewise
  uint64_t inode = 0;       // of one file; a digest of all of them
  uint64_t header_digest = 0;
  uint64_t sample_digest = 0;
};
// Reads the headers (in memory already) and kSamplePages pages of each file.
SourceIdentity IdentityOf(const model::ModelFile& file);
// When the file was seen like that; of several, the first.
int64_t SeenNs(const model::ModelFile& file);

// True if any change after `seen_ns`, when the file was seen like that (by the wall clock), must
// show in its times, which move in ticks. What was packed of another file may not be kept.
bool Settled(const SourceIdentity& source, int64_t seen_ns);

struct EntryKey {
  uint32_t pack_version = 0;
  Layout layout = Layout::kReference;
  SourceIdentity source;
  // Of every tensor in order: which values of the file it is made of and how (name, slice, first
  // row, stride and block, transposition, what is done to values, scales), its type, shape and
  // packed size.
  uint64_t plan_digest = 0;
  uint64_t payload_bytes = 0;
};
static_assert(std::has_unique_object_representations_v<EntryKey>);  // compared and stored as bytes

bool SamePacking(const EntryKey& a, const EntryKey& b);
bool SameSource(const EntryKey& a, const EntryKey& b);

}  // namespace vivace::weight_cache
