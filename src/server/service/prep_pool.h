// The threads that parse, render and tokenise, away from the event loop. Jobs run in the order they
// came. How many wait is bounded by admission: only a request that holds a ticket posts one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vivace::server {

class PrepPool {
 public:
  explicit PrepPool(int threads);
  ~PrepPool() { Stop(); }
  PrepPool(const PrepPool&) = delete;
  PrepPool& operator=(const PrepPool&) = delete;

  // Any thread. `job` must not throw.
  void Post(std::function<void()> job);
  // Runs no further job; waits for those that run. Idempotent; owner's thread.
  void Stop();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vivace::server
