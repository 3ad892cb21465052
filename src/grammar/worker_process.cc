#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/limits.h"
#include "grammar/worker.h"
#include "grammar/worker_wire.h"

namespace vivace::grammar {
namespace {

using Clock = std::chrono::steady_clock;

bool WaitFor(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one = {socket, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Starts the program with descriptor 0 as the socket, 1 and 2 nowhere, and none of our others; in a
// group of its own, so that Ctrl-C is the server's alone. -1: it cannot be started.
pid_t Spawn(const std::vector<std::string>& command, int socket) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, socket, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  char* no_environment[] = {nullptr};
  pid_t pid = -1;
  const int failed =
      posix_spawn(&pid, command[0].c_str(), &files, &attributes, arguments.data(), no_environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failed == 0 ? pid : -1;
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> command,
                             std::shared_ptr<const Vocabulary> vocabulary)
    : command_(std::move(command)), vocabulary_(std::move(vocabulary)) {}

WorkerProcess::~WorkerProcess() { Stop(); }

void WorkerProcess::Stop() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Status WorkerProcess::Start(Clock::time_point deadline) {
  if (pid_ > 0) {
    if (waitpid(pid_, nullptr, WNOHANG) == 0) return {};
    pid_ = -1;  // it has died since, and is reaped
    Stop();
  }
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return Fail(ErrorCode::kInternal, "grammar_worker", "", "no socket for the grammar worker");
  }
  socket_ = sockets[0];
  pid_ = Spawn(command_, sockets[1]);
  close(sockets[1]);
  if (pid_ < 0) {
    Stop();
    return Fail(ErrorCode::kInternal, "grammar_worker", "",
                "the process that compiles grammars cannot be started");
  }
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  std::string message;
  wire::PutU32(static_cast<uint32_t>(vocabulary_->size()), &message);
  wire::PutU32(static_cast<uint32_t>(vocabulary_->stop().size()), &message);
  for (const TokenId stop : vocabulary_->stop())
    wire::PutU32(static_cast<uint32_t>(stop), &message);
  for (const std::string& token : vocabulary_->tokens()) wire::PutText(token, &message);
  if (Send(message, deadline)) return {};
  Stop();
  return Fail(ErrorCode::kInternal, "grammar_worker", "",
              "the process that compiles grammars does not answer");
}

bool WorkerProcess::Send(std::string_view payload, Clock::time_point deadline) {
  std::string message;
  wire::PutText(payload, &message);
  std::string_view rest = message;
  while (!rest.empty()) {
    const ssize_t sent = send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      rest.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!WaitFor(socket_, POLLOUT, deadline)) return false;
    } else {
      return false;
    }
  }
  return true;
}

bool WorkerProcess::Receive(std::string* payload, Clock::time_point deadline) {
  std::string bytes(sizeof(uint32_t), '\0');
  size_t have = 0;
  bool sized = false;
  for (;;) {
    while (have < bytes.size()) {
      const ssize_t got = recv(socket_, bytes.data() + have, bytes.size() - have, 0);
      if (got > 0) {
        have += static_cast<size_t>(got);
      } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (!WaitFor(socket_, POLLIN, deadline)) return false;
      } else {
        return false;
      }
    }
    if (sized) break;
    const uint32_t size = *wire::Reader(bytes).U32();
    if (size == 0 || size > wire::kMostBytes) return false;
    sized = true;
    bytes.assign(size, '\0');
    have = 0;
  }
  *payload = std::move(bytes);
  return true;
}

Status WorkerProcess::Prepare() {
  // Starting is not a grammar's doing: it has time of its own.
  constexpr std::chrono::seconds kStartTime(10);
  return Start(Clock::now() + kStartTime);
}

// After it stopped talking to us: its own end, or ours of waiting.
Error WorkerProcess::WhyItEnded(Clock::time_point deadline, std::chrono::milliseconds time) {
  const auto costly = [](std::string what) {
    return Error{ErrorCode::kInvalidArgument, "grammar_too_costly", std::move(what), ""};
  };
  if (Clock::now() >= deadline) {
    return {ErrorCode::kResourceExhausted, "grammar_busy",
            "compiling it got too little of a busy machine; try again", ""};
  }
  int status = 0;
  pid_t ended = 0;
  // Its end of the socket is closed, so it is ending.
  for (int tries = 0; tries < 100 && ended == 0; ++tries) {
    ended = waitpid(pid_, &status, WNOHANG);
    if (ended == 0) poll(nullptr, 0, 10);
  }
  if (ended != pid_) return costly("it could not be compiled");
  pid_ = -1;  // reaped
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
    return costly(fmt::format("it takes more than {} ms to compile and to try out", time.count()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == wire::kOutOfMemory) {
    return costly("it takes too much memory to compile");
  }
  if (WIFSIGNALED(status)) {
    return costly(
        fmt::format("it ended the process that compiles grammars (signal {}); make it "
                    "simpler",
                    WTERMSIG(status)));
  }
  return costly("it ended the process that compiles grammars; make it simpler");
}

Result<std::string> WorkerProcess::Compile(const Lowered& text, std::chrono::milliseconds time) {
  VIVACE_RETURN_IF_ERROR(Prepare());
  // The child bounds what it computes; waiting for a processor on a busy machine is bounded here.
  constexpr int kMostWaiting = 6;
  const auto deadline = Clock::now() + kMostWaiting * time + std::chrono::seconds(1);
  std::string request, answer;
  wire::PutU32(static_cast<uint32_t>(time.count()), &request);
  request += static_cast<char>(text.kind);
  request += static_cast<char>(text.names_tokens);
  request += static_cast<char>(text.of_client);
  request += text.text;
  if (!Send(request, deadline) || !Receive(&answer, deadline)) {
    Error error = WhyItEnded(deadline, time);
    Stop();
    return tl::unexpected<Error>(std::move(error));
  }
  const auto status = static_cast<wire::Status>(answer[0]);
  answer.erase(0, 1);
  if (status == wire::Status::kCompiled) return answer;
  return Fail(ErrorCode::kInvalidArgument,
              status == wire::Status::kBad ? "bad_grammar" : "grammar_too_costly", "", "{}",
              answer);
}

}  // namespace vivace::grammar
