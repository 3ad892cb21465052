// Looks now and then whether files have changed, on a thread of its own that may block on the disk:
// for keys and certificates that are renewed while the server runs.
//
// A change counts once the files have looked the same twice in a row, so that a file being written
// is left alone. Size, times and inode are compared; a file that is gone counts as changed.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace vivace::server {

class FileWatch {
 public:
  struct Item {
    std::vector<std::string> files;
    bool poll = true;              // false: only when asked to
    std::function<void()> reload;  // on the watch's thread
  };

  explicit FileWatch(std::vector<Item> items, int interval_ms = 500);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Any thread: reloads everything soon, changed or not.
  void ReloadAll();

 private:
  struct Watched;
  void Watch();

  const int interval_ms_;
  std::vector<std::unique_ptr<Watched>> watched_;  // the thread's own
  std::mutex mutex_;
  std::condition_variable wake_;
  bool reload_all_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace vivace::server
