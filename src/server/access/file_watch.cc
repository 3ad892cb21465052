#include "server/access/file_watch.h"

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace vivace::server {
namespace {

using Look = std::array<int64_t, 6>;  // zeros: not there

Look LookAt(const std::string& file) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return {};
  return {static_cast<int64_t>(info.st_ino),
          static_cast<int64_t>(info.st_size),
          info.st_mtim.tv_sec,
          info.st_mtim.tv_nsec,
          info.st_ctim.tv_sec,
          info.st_ctim.tv_nsec};
}

std::vector<Look> LookAt(const std::vector<std::string>& files) {
  std::vector<Look> looks;
  looks.reserve(files.size());
  for (const std::string& file : files) looks.push_back(LookAt(file));
  return looks;
}

}  // namespace

struct FileWatch::Watched {
  Item item;
  std::vector<Look> loaded;  // as they were when last loaded
  std::vector<Look> last;    // as they were a moment ago

  bool Changed() {
    std::vector<Look> now = LookAt(item.files);
    const bool settled = now == last;
    last = std::move(now);
    return settled && last != loaded;
  }
};

FileWatch::FileWatch(std::vector<Item> items, int interval_ms) : interval_ms_(interval_ms) {
  for (Item& item : items) {
    auto watched = std::make_unique<Watched>();
    watched->loaded = LookAt(item.files);
    watched->last = watched->loaded;
    watched->item = std::move(item);
    watched_.push_back(std::move(watched));
  }
  thread_ = std::thread([this] { Watch(); });
}

FileWatch::~FileWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void FileWatch::ReloadAll() {
  {
    const std::lock_guard lock(mutex_);
    reload_all_ = true;
  }
  wake_.notify_all();
}

void FileWatch::Watch() {
  for (;;) {
    bool all = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(interval_ms_),
                     [this] { return stopping_ || reload_all_; });
      if (stopping_) return;
      all = std::exchange(reload_all_, false);
    }
    for (const auto& watched : watched_) {
      if (all) watched->last = LookAt(watched->item.files);
      if (!all && (!watched->item.poll || !watched->Changed())) continue;
      watched->loaded = watched->last;
      watched->item.reload();
    }
  }
}

}  // namespace vivace::server
