#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace vivace {
namespace {

tl::unexpected<Error> SystemFault(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Fail(ErrorCode::kNotFound, "not_found", "", "{}: no such file", path);
    case EACCES:
    case EPERM:
      return Fail(ErrorCode::kIo, "permission_denied", "", "{}: permission denied", path);
    default:
      return Fail(ErrorCode::kIo, "io_error", "", "{}: {}", path, std::strerror(error));
  }
}

int64_t Nanos(const timespec& time) {
  return int64_t{time.tv_sec} * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return SystemFault("the file's name", EINVAL);
  MappedFile file;
  file.path_ = path;
  // Non-blocking, so that a FIFO is refused below and not waited for.
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) return SystemFault(path, errno);
  const int64_t now_ns = WallNanos();
  struct stat info;
  if (::fstat(file.fd_, &info) != 0) return SystemFault(path, errno);
  if (S_ISDIR(info.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "is_directory", "",
                "{}: is a directory, a file is needed", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "not_a_file", "", "{}: is not a regular file", path);
  }
  file.stamp_ = {.size = static_cast<uint64_t>(info.st_size),
                 .modified_ns = Nanos(info.st_mtim),
                 .changed_ns = Nanos(info.st_ctim),
                 .inode = info.st_ino,
                 .seen_ns = now_ns};
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (data == MAP_FAILED) return SystemFault(path, errno);
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

void MappedFile::WillNeed(std::span<const std::byte> range) const {
  Advise(range, /*inward=*/false, MADV_WILLNEED);
}

void MappedFile::DontNeed(std::span<const std::byte> range) const {
  Advise(range, /*inward=*/true, MADV_DONTNEED);
}

void MappedFile::Advise(std::span<const std::byte> range, bool inward, int advice) const {
  static const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<uintptr_t>(data_);
  const auto start = reinterpret_cast<uintptr_t>(range.data());
  if (data_ == nullptr || range.empty() || start < base || start - base > size_ ||
      range.size() > size_ - (start - base)) {
    return;
  }
  size_t first = start - base;
  size_t last = first + range.size();
  if (inward) {
    first = (first + page - 1) / page * page;
    if (last != size_) last = last / page * page;  // the file's last page is all ours
  } else {
    first = first / page * page;
  }
  if (first < last) {
    // A hint: an error changes nothing for the caller.
    (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, advice);
  }
}

Status MappedFile::CheckUnchanged() const {
  if (fd_ < 0) return {};
  struct stat info;
  if (::fstat(fd_, &info) != 0) return SystemFault(path_, errno);
  if (static_cast<size_t>(info.st_size) != size_ || Nanos(info.st_mtim) != stamp_.modified_ns) {
    return Fail(ErrorCode::kIo, "file_changed", "", "{}: was changed while it was being read",
                path_);
  }
  return {};
}

}  // namespace vivace
