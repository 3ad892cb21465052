#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace vivace::hub {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

}  // namespace

Result<FileLock> FileLock::Take(const std::string& path, const std::function<bool()>& stop) {
  while (true) {
    FileLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0664));
    if (!lock.file_.valid()) return IoFault(path);
    while (flock(lock.file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return Fail(ErrorCode::kIo, "io_error", "", "{}: cannot be locked: {}", path,
                    std::strerror(errno));
      }
      if (stop()) return Fail(ErrorCode::kUnavailable, "interrupted", "", "stopped");
      std::this_thread::sleep_for(kPoll);
    }
    if (StillNamed(lock.file_.fd(), path)) return lock;
  }
}

bool FileLock::IsFree(const std::string& path) {
  const FileLock probe(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return !probe.file_.valid() || flock(probe.file_.fd(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace vivace::hub
