// Times at which answers must be looked at, however many: one timer of the loop serves them all.
// Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "server/http/http.h"

namespace vivace::server {

class Generation;

class Deadlines {
 public:
  // `due` is called for each whose time has come and who still lives.
  explicit Deadlines(std::function<void(const std::shared_ptr<Generation>&)> due)
      : due_(std::move(due)) {}

  // Once, before the first Add. `http` outlives the use.
  void Attach(HttpServer* http) { http_ = http; }

  // Steady clock. Those who end are forgotten with the next look, at most kLookMs later.
  void Add(int64_t at_ns, const std::shared_ptr<Generation>& generation);
  size_t size() const { return waiting_.size(); }

 private:
  void Arm(int64_t now_ns);
  void Look(uint64_t look);

  const std::function<void(const std::shared_ptr<Generation>&)> due_;
  HttpServer* http_ = nullptr;
  std::multimap<int64_t, std::weak_ptr<Generation>> waiting_;
  int64_t armed_ns_ = 0;  // when the next look is; 0: none is coming
  uint64_t look_ = 0;     // its number: an earlier one was overtaken
};

}  // namespace vivace::server
