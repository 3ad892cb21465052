// A regular file mapped read-only into memory.
//
// Cost: one open and one mmap; pages are read when touched. Owns the mapping and the descriptor;
// move-only, and moving it does not move the bytes, so views stay valid as long as some MappedFile
// holds them. Const members may be called from any thread.
// A file that another program truncates while it is mapped kills the reader with SIGBUS: whoever
// reads in bulk calls CheckUnchanged() around it, and packs (copies) what it keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace vivace {

// What the file system says of a file's state. Whoever changes its bytes changes the second time,
// which no program can set: it moves on with the clock's ticks (up to 2 s on old file systems).
struct FileStamp {
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  uint64_t inode = 0;
  int64_t seen_ns = 0;  // when this was read, by the wall clock
};

class MappedFile {
 public:
  // Reasons: not_found, is_directory, not_a_file, permission_denied, io_error. An empty file opens
  // with no bytes: what that means is for the format to say.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }  // at Open

  // Hints; both ignore what lies outside the file. WillNeed starts reading the range ahead.
  // DontNeed gives back the pages that lie wholly inside the range; touching them reads them again.
  void WillNeed(std::span<const std::byte> range) const;
  void DontNeed(std::span<const std::byte> range) const;

  // Fails with file_changed if size or modification time differ from those at Open.
  Status CheckUnchanged() const;

 private:
  void Advise(std::span<const std::byte> range, bool inward, int advice) const;

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
  FileStamp stamp_;
};

}  // namespace vivace
