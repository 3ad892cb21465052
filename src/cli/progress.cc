#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
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

void Progress::Update(uint64_t done, uint64_t total, const std::string& detail) {
  if (!terminal_ || total == 0) return;
  const int percent =
      static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  if (percent == shown_percent_ && detail == shown_detail_) return;
  shown_percent_ = percent;
  shown_detail_ = detail;
  const int filled = std::clamp(percent * kBarWidth / 100, 0, kBarWidth);
  // Cut to the window: a line that wraps cannot be redrawn.
  std::string line = fmt::format("{} [{:#<{}}{:-<{}}] {:3}%{}", what_, "", filled, "",
                                 kBarWidth - filled, percent, detail);
  winsize window{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  line.resize(std::min(line.size(), known ? size_t{window.ws_col} - 1 : size_t{79}));
  fmt::print(stderr, "\r{}\033[K", line);
}

}  // namespace vivace::cli
