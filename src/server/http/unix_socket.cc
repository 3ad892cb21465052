#include "server/http/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "base/file_io.h"

namespace vivace::server {
namespace {

tl::unexpected<Error> BadPath(const std::string& path, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, "cannot_listen", "uds",
              "cannot listen on the Unix socket {}: {}; --uds takes a path in a folder of yours",
              path, why);
}

Descriptor NewSocket() {
  return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// A socket file that nobody listens on goes; anything else stays and is said.
Status ClearTheWay(const std::string& path, const sockaddr_un& address) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return BadPath(path, "a file that is no socket is there");
  const Descriptor probe = NewSocket();
  const bool refused =
      connect(probe.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED;
  if (!refused) {
    return Fail(ErrorCode::kUnavailable, "port_in_use", "uds",
                "the Unix socket {} is in use: stop what listens there, or choose another path "
                "with --uds",
                path);
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return BadPath(path, strerror(errno));
  return {};
}

}  // namespace

Result<int> UnixSocketFile::Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return BadPath(path, fmt::format("a path has 1 to {} bytes", sizeof address.sun_path - 1));
  }
  memcpy(address.sun_path, path.c_str(), path.size());
  VIVACE_RETURN_IF_ERROR(ClearTheWay(path, address));
  Descriptor listener = NewSocket();
  // Linux gives the file the mode that the socket has when it is bound.
  if (!listener.valid() || fchmod(listener.fd(), S_IRUSR | S_IWUSR) != 0 ||
      bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return BadPath(path, strerror(errno));
  }
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return BadPath(path, strerror(errno));
  path_ = path;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  if (listen(listener.fd(), SOMAXCONN) != 0) return BadPath(path, strerror(errno));
  const int fd = fcntl(listener.fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return BadPath(path, strerror(errno));
  return fd;
}

void UnixSocketFile::Remove() {
  if (path_.empty()) return;
  const std::string path = std::exchange(path_, {});
  struct stat info;
  const bool ours = lstat(path.c_str(), &info) == 0 && info.st_dev == device_ &&
                    info.st_ino == inode_ && S_ISSOCK(info.st_mode);
  if (ours) unlink(path.c_str());
}

}  // namespace vivace::server
