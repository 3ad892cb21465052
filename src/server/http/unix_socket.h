// A listening Unix socket: made, and removed again. POSIX only, no Asio.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace vivace::server {

// Owns the socket's file, not the descriptor: whoever listens takes that.
class UnixSocketFile {
 public:
  UnixSocketFile() = default;
  ~UnixSocketFile() { Remove(); }
  UnixSocketFile(const UnixSocketFile&) = delete;
  UnixSocketFile& operator=(const UnixSocketFile&) = delete;

  // Binds and listens at `path`, with mode 0600 from the first moment on; returns the descriptor.
  // What an ended server left there is replaced; a socket that somebody listens on, and a file
  // that is no socket, are errors.
  Result<int> Listen(const std::string& path);

  // Deletes the file, unless something else stands in its place by now.
  void Remove();

 private:
  std::string path_;  // empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace vivace::server
