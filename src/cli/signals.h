// SIGINT, SIGTERM and, where it is asked for, SIGHUP as calls on a thread.
#pragma once

#include <functional>
#include <thread>

namespace vivace::cli {

// Calls `on_signal(signal, count)` on a thread of its own for the first, second, ... signal that
// BlockSignals keeps from the others. One that comes within a tenth of a second of the last is the
// same. SIGHUP comes with count 0. Gone with the object.
class SignalThread {
 public:
  explicit SignalThread(std::function<void(int signal, int count)> on_signal);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  int wake_fd_;
  std::thread thread_;
};

// Blocks the signals in this thread and all it will start, so call it before any other starts.
// SIGPIPE is ignored. `hang_up`: SIGHUP too; else it ends the process, as it does when a terminal
// closes.
void BlockSignals(bool hang_up = false);

}  // namespace vivace::cli
