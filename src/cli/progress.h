// Progress of a long step: a bar that redraws itself on a terminal, nothing but the end elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace vivace::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void Update(uint64_t done, uint64_t total);
  // Takes the bar off the screen.
  void Clear();

 private:
  std::string what_;
  bool terminal_;
  int shown_percent_ = -1;
};

}  // namespace vivace::cli
