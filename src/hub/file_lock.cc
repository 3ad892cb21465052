#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace vivace::hub {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

// Whoever held the lock may have deleted the file; a lock on what has no name binds nobody.
bool StillNamed(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

Result<FileLock> FileLock::Take(const std::string& path, const std::function<bool()>& stop) {
  while (true) {
    FileLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0664));
    if (lock.fd_ < 0) {
      return Fail(ErrorCode::kIo, "io_error", "", "{}: {}", path, std::strerror(errno));
    }
    while (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return Fail(ErrorCode::kIo, "io_error", "", "{}: cannot be locked: {}", path,
                    std::strerror(errno));
      }
      if (stop()) return Fail(ErrorCode::kUnavailable, "interrupted", "", "stopped");
      std::this_thread::sleep_for(kPoll);
    }
    if (StillNamed(lock.fd_, path)) return lock;
  }
}

bool FileLock::IsFree(const std::string& path) {
  const FileLock probe(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return probe.fd_ < 0 || flock(probe.fd_, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace vivace::hub
