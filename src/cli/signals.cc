#include "cli/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "base/check.h"
#include "base/clock.h"

namespace vivace::cli {
namespace {

// Some tools signal a process and then its group: what comes so soon is the same signal.
constexpr int64_t kOneSignalNs = kNanosPerSecond / 10;

sigset_t Handled(bool hang_up) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (hang_up) sigaddset(&set, SIGHUP);
  return set;
}

void Watch(int wake_fd, const std::function<void(int, int)>& on_signal) {
  const sigset_t set = Handled(/*hang_up=*/true);  // comes only if it is blocked
  const int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
  VIVACE_CHECK(signal_fd >= 0);
  int64_t last = 0;
  for (int count = 0;;) {
    pollfd fds[] = {{wake_fd, POLLIN, 0}, {signal_fd, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[0].revents != 0) break;
    signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof(info)) != sizeof(info)) continue;
    if (info.ssi_signo == SIGHUP) {
      on_signal(SIGHUP, 0);
      continue;
    }
    const int64_t now = SteadyNanos();
    if (count > 0 && now - last < kOneSignalNs) continue;
    last = now;
    on_signal(static_cast<int>(info.ssi_signo), ++count);
  }
  close(signal_fd);
}

}  // namespace

void BlockSignals(bool hang_up) {
  const sigset_t set = Handled(hang_up);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

SignalThread::SignalThread(std::function<void(int, int)> on_signal)
    : wake_fd_(eventfd(0, EFD_CLOEXEC)),
      thread_([this, on_signal = std::move(on_signal)] { Watch(wake_fd_, on_signal); }) {}

SignalThread::~SignalThread() {
  eventfd_write(wake_fd_, 1);
  thread_.join();
  close(wake_fd_);
}

}  // namespace vivace::cli
