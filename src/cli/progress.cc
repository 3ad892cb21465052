#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace vivace::cli {
namespace {
constexpr int kBarWidth = 30;
}

Progress::Progress(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() { Clear(); }

void Progress::Clear() {
  if (terminal_ && shown_percent_ >= 0) fmt::print(stderr, "\r\033[K");
  shown_percent_ = -1;
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const int percent =
      static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  const int filled = std::clamp(percent * kBarWidth / 100, 0, kBarWidth);
  fmt::print(stderr, "\r{} [{:#<{}}{:-<{}}] {:3}%", what_, "", filled, "", kBarWidth - filled,
             percent);
}

}  // namespace vivace::cli
