// A lock between processes by flock(2) on a file, as Python's `filelock` takes it, so that two
// downloaders of any kind don't write one blob. Gone with the object, or with the process.
#pragma once

#include <functional>
#include <string>

#include "base/file_io.h"
#include "base/result.h"

namespace vivace::hub {

class FileLock {
 public:
  // Waits for whoever has it; asks `stop` while it does (reason interrupted). Makes the file.
  static Result<FileLock> Take(const std::string& path, const std::function<bool()>& stop);
  // False if somebody has it now; never waits, and makes no file.
  static bool IsFree(const std::string& path);

 private:
  explicit FileLock(int fd) : file_(fd) {}
  Descriptor file_;
};

}  // namespace vivace::hub
