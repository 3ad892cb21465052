// Progress of a long step: a bar that redraws itself on a terminal, nothing but the end elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace vivace::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void Update(uint64_t done, uint64_t total) { Update(done, total, ""); }
  // With words behind the bar, which may change while the share does not.
  void Update(uint64_t done, uint64_t total, const std::string& detail);
  // Takes the bar off the screen.
  void Clear();

 private:
  std::string what_;
  bool terminal_;
  int shown_percent_ = -1;
  std::string shown_detail_;
};

}  // namespace vivace::cli
