// A descriptor that closes itself, and whole reads and writes of it. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace vivace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  int fd() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

// io_error, from errno: "PATH: No space left on device".
tl::unexpected<Error> IoFault(const std::string& path);

// False, with errno set (0 for a file that ends early), if not all of it could be moved.
bool ReadAll(int fd, std::span<std::byte> to, size_t offset);
bool WriteAll(int fd, std::span<const std::byte> from, size_t offset);

// Whether `path`, not followed if it is a link, is the open file. Whoever held a lock may have
// deleted what it was on, and a lock on what has no name binds nobody.
bool StillNamed(int fd, const std::string& path);

// Locks the open file against other processes and descriptors until it is closed. False if it is
// locked already, or `path` no longer names it.
bool LockNamed(int fd, const std::string& path);

}  // namespace vivace
