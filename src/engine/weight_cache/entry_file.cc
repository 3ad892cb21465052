#include "engine/weight_cache/entry_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/file_io.h"
#include "engine/weight_cache/digest.h"

namespace vivace::weight_cache {
namespace {

constexpr char kMagic[8] = {'V', 'i', 'v', 'a', 'c', 'e', 'W', '\n'};
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kSyncBytes = 64u << 20;    // written between syncs: none takes long
constexpr size_t kBatchBytes = 256u << 20;  // read between two words of progress

struct Header {
  char magic[8];
  uint32_t format_version;
  uint32_t chunk_bytes;
  EntryKey key;
  uint64_t payload_digest;
  uint64_t header_digest;  // of all before
};
static_assert(std::has_unique_object_representations_v<Header> && sizeof(Header) <= kHeaderBytes);

uint64_t HeaderDigest(const Header& header) {
  return Digest(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_digest)));
}

Header MakeHeader(const EntryKey& key, uint64_t payload_digest) {
  Header header{.magic = {},
                .format_version = kFormatVersion,
                .chunk_bytes = kChunkBytes,
                .key = key,
                .payload_digest = payload_digest,
                .header_digest = 0};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.header_digest = HeaderDigest(header);
  return header;
}

size_t Chunks(size_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

template <typename Bytes>
Bytes ChunkOf(Bytes payload, size_t i) {
  const size_t first = i * kChunkBytes;
  return payload.subspan(first, std::min(kChunkBytes, payload.size() - first));
}

uint64_t Combine(const std::vector<uint64_t>& digests) {
  return Digest(std::as_bytes(std::span(digests)));
}

// ---- reading ------------------------------------------------------------------------------------

Result<Descriptor> OpenEntry(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.valid() && errno == ENOENT) {
    return Fail(ErrorCode::kNotFound, "no_entry", "", "{}: no such entry", path);
  }
  if (!file.valid()) return IoFault(path);
  return file;
}

// The entry is a file that only this user (or root) can change.
Status CheckOwner(const std::string& path, const struct stat& info) {
  const bool ours = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || !ours || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(ErrorCode::kIo, "unsafe_entry", "",
                "{}: not a file that only this user can change; delete it", path);
  }
  return {};
}

Status CheckHeader(const std::string& path, const Header& header, const EntryKey& key) {
  const auto fail = [&](const char* reason, const char* what) {
    return Fail(ErrorCode::kCorruptData, reason, "", "{}: {}", path, what);
  };
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return fail("damaged", "not an entry of the weight cache");
  }
  if (header.format_version != kFormatVersion || header.chunk_bytes != kChunkBytes) {
    return fail("other_version", "written by another version");
  }
  if (header.header_digest != HeaderDigest(header)) return fail("damaged", "its header is damaged");
  if (!SameSource(header.key, key)) return fail("other_source", "the model file has changed");
  if (!SamePacking(header.key, key)) {
    return fail("other_packing", "its weights are packed in another way");
  }
  return {};
}

// Chunks are read and digested by whichever worker is free; false (and errno) if one cannot be
// read.
bool ReadPayload(int fd, std::span<std::byte> payload, ThreadPool& pool,
                 std::vector<uint64_t>* digests, const LoadProgress& progress) {
  constexpr size_t kBatch = kBatchBytes / kChunkBytes;
  std::atomic<int> error{-1};
  for (size_t first = 0; first < digests->size() && error < 0; first += kBatch) {
    const size_t count = std::min(kBatch, digests->size() - first);
    pool.ForEach(static_cast<int64_t>(count), [&](int64_t item) {
      const size_t i = first + static_cast<size_t>(item);
      const std::span<std::byte> chunk = ChunkOf(payload, i);
      if (!ReadAll(fd, chunk, kHeaderBytes + i * kChunkBytes)) {
        error = errno;
      } else {
        (*digests)[i] = Digest(chunk);
      }
    });
    const size_t done = std::min((first + count) * kChunkBytes, payload.size());
    if (progress && !progress(done, payload.size())) error = ECANCELED;
  }
  if (error >= 0) errno = error;
  return error < 0;
}

// ---- writing ------------------------------------------------------------------------------------

// The file an entry is written to, locked while it is ours. The lock tells a writer at work from
// one that died; the name is only ever taken away under it.
class TempFile {
 public:
  static Result<TempFile> Open(const std::string& path) {
    Descriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!file.valid()) return IoFault(path);
    struct stat info;
    if (::fstat(file.fd(), &info) != 0) return IoFault(path);
    VIVACE_RETURN_IF_ERROR(CheckOwner(path, info));
    // The name may have become the entry's between our open and our lock.
    if (!LockNamed(file.fd(), path)) {
      return Fail(ErrorCode::kUnavailable, "busy", "", "{}: another process writes it", path);
    }
    TempFile temp(path, std::move(file));
    if (::ftruncate(temp.fd(), 0) != 0 || ::fchmod(temp.fd(), 0600) != 0) return IoFault(path);
    return temp;
  }

  TempFile(TempFile&& other) noexcept = default;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile() {
    if (file_.valid()) ::unlink(path_.c_str());
  }

  int fd() const { return file_.fd(); }
  const std::string& path() const { return path_; }

  Status Commit(const std::string& to) && {
    if (::fsync(file_.fd()) != 0 || ::rename(path_.c_str(), to.c_str()) != 0) {
      return IoFault(path_);
    }
    file_ = Descriptor();
    return {};
  }

 private:
  TempFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

// Takes the space at once, where the file system can: a full disk shows before gigabytes are
// written.
bool Allocate(int fd, size_t bytes) {
  return ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 || errno == EOPNOTSUPP ||
         errno == ENOSYS;
}

}  // namespace

Status ReadEntry(const std::string& path, const EntryKey& key, std::span<std::byte> payload,
                 ThreadPool& pool, const LoadProgress& progress) {
  VIVACE_ASSIGN(const Descriptor file, OpenEntry(path));
  struct stat info;
  if (::fstat(file.fd(), &info) != 0) return IoFault(path);
  VIVACE_RETURN_IF_ERROR(CheckOwner(path, info));
  const auto damaged = [&](const char* what) {
    return Fail(ErrorCode::kCorruptData, "damaged", "", "{}: {}", path, what);
  };
  Header header;
  if (info.st_size < off_t{kHeaderBytes}) return damaged("cut short");
  if (!ReadAll(file.fd(), std::as_writable_bytes(std::span(&header, 1)), 0)) return IoFault(path);
  VIVACE_RETURN_IF_ERROR(CheckHeader(path, header, key));
  if (static_cast<uint64_t>(info.st_size) != kHeaderBytes + payload.size()) {
    return damaged("not of the size its header says");
  }
  (void)::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<uint64_t> digests(Chunks(payload.size()));
  if (!ReadPayload(file.fd(), payload, pool, &digests, progress)) return IoFault(path);
  if (Combine(digests) != header.payload_digest) return damaged("its weights are damaged");
  (void)::futimens(file.fd(), nullptr);  // last used now; refused for a file of root's
  return {};
}

Status WriteEntry(const std::string& path, const EntryKey& key, std::span<const std::byte> payload,
                  const std::atomic<bool>& stop) {
  VIVACE_ASSIGN(TempFile temp, TempFile::Open(path + std::string(kTempSuffix)));
  if (!Allocate(temp.fd(), kHeaderBytes + payload.size())) return IoFault(temp.path());
  std::vector<uint64_t> digests(Chunks(payload.size()));
  for (size_t i = 0; i < digests.size(); ++i) {
    if (stop) {
      return Fail(ErrorCode::kUnavailable, "stopped", "", "{}: left off", path);
    }
    const std::span<const std::byte> chunk = ChunkOf(payload, i);
    digests[i] = Digest(chunk);
    if (!WriteAll(temp.fd(), chunk, kHeaderBytes + i * kChunkBytes)) return IoFault(temp.path());
    if ((i + 1) % (kSyncBytes / kChunkBytes) == 0 && ::fdatasync(temp.fd()) != 0) {
      return IoFault(temp.path());
    }
  }
  std::array<std::byte, kHeaderBytes> page{};
  const Header header = MakeHeader(key, Combine(digests));
  std::memcpy(page.data(), &header, sizeof(header));
  if (!WriteAll(temp.fd(), page, 0)) return IoFault(temp.path());
  return std::move(temp).Commit(path);
}

}  // namespace vivace::weight_cache
