#include "cli/pull_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace vivace::cli {

void PullProgress::Update(uint64_t done, uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (first_) {
    first_ = false;
    first_bytes_ = done;
    began_ = now;
  }
  if (now - shown_ < std::chrono::milliseconds(200) && done != total) return;
  shown_ = now;
  first_bytes_ = std::min(first_bytes_, done);
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double speed = seconds > 0.5 ? static_cast<double>(done - first_bytes_) / seconds : 0;
  bar_.Update(
      done, total,
      fmt::format(" {} of {}{}", FormatBytes(done), FormatBytes(total),
                  speed > 0 ? fmt::format(", {}/s", FormatBytes(static_cast<uint64_t>(speed)))
                            : std::string()));
}

}  // namespace vivace::cli
