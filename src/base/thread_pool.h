// A team of compute threads for fork-join loops of a few microseconds each.
// The caller is worker 0. Workers spin briefly between loops, then park on a futex; an idle pool
// costs nothing. One loop at a time; Run is called by one thread. Neither copied nor moved.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace vivace {

class ThreadPool {
 public:
  // `threads` >= 1 counts the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  // Calls body(worker) once on every worker, 0 <= worker < size(), and returns when all are done.
  // Never allocates. `body` must not throw and must not call Run.
  template <typename Body>
  void Run(Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    RunErased([](void* context, int worker) { (*static_cast<Callable*>(context))(worker); },
              const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Calls body(i) for 0 <= i < count, items handed out one by one to whichever worker is free.
  // The assignment of items to workers is unspecified, so results must not depend on it.
  template <typename Body>
  void ForEach(int64_t count, Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    ForEachErased(
        count, [](void* context, int64_t i) { (*static_cast<Callable*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  void RunErased(void (*body)(void*, int), void* context);
  void ForEachErased(int64_t count, void (*body)(void*, int64_t), void* context);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vivace
