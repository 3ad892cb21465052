// The listening side: accept with limits, wake-ups from other threads, drain and stop.
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "server/http/asio.h"
#include "server/http/connection.h"
#include "server/http/http.h"
#include "server/http/loop.h"
#include "server/http/unix_socket.h"

namespace vivace::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
using boost::system::error_code;

constexpr int kAcceptPauseMs = 100;       // out of descriptors: try again then, do not spin
constexpr int kReservedDescriptors = 64;  // for model files, logs, pipes
constexpr int kMinConnections = 16;

int MaxConnections(const HttpOptions& options) {
  if (options.max_connections > 0) return options.max_connections;
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 1'024 - kReservedDescriptors;
  const rlim_t capped = std::min<rlim_t>(files.rlim_cur, 1 << 20);
  return std::max(kMinConnections, static_cast<int>(capped) - kReservedDescriptors);
}

// A write to a client that left must be an error, not the end of the process.
void IgnoreSigPipe() {
  struct sigaction current;
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

// A name such as localhost may stand for both families: clients that are given 127.0.0.1 must get
// in.
tcp::endpoint Preferred(const tcp::resolver::results_type& found) {
  const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& entry) {
    return entry.endpoint().address().is_v4();
  });
  return v4 != found.end() ? v4->endpoint() : found.begin()->endpoint();
}

tl::unexpected<Error> BindFailure(const HttpOptions& options, const error_code& error) {
  if (error == asio::error::address_in_use) {
    return Fail(ErrorCode::kUnavailable, "port_in_use", "port",
                "port {} of {} is in use: stop what listens there, or choose another with --port",
                options.port, options.host);
  }
  if (error == asio::error::access_denied) {
    return Fail(ErrorCode::kInvalidArgument, "port_not_allowed", "port",
                "this user may not listen on port {}: choose one above 1023 with --port",
                options.port);
  }
  return Fail(ErrorCode::kInvalidArgument, "cannot_listen", "host",
              "cannot listen on {} port {}: {}; --host takes an address of this machine",
              options.host, options.port, error.message());
}

class Server final : public HttpServer {
 public:
  Server(const HttpOptions& options, HeaderCheck check, Handler handler);
  ~Server() override;

  Status Open();

  uint16_t port() const override { return port_; }
  void Run() override { loop_->io.run(); }
  void UseTls(std::shared_ptr<const TlsContext> tls) override {
    Post([this, tls = std::move(tls)] { loop_->options.tls = tls; });
  }
  void Post(std::function<void()> work) override;
  void Wake() override;
  void OnWake(std::function<void()> callback) override { on_wake_ = std::move(callback); }
  void After(int ms, std::function<void()> work) override;
  void BeginDrain() override;
  void SetRetryAfter(int seconds) override { loop_->retry_after_s = seconds; }
  int open_connections() const override { return static_cast<int>(loop_->connections.size()); }
  int active_exchanges() const override { return loop_->active_exchanges; }
  void Stop() override;

 private:
  Status OpenTcp();
  Status OpenUnix();
  void Accept();
  void Admit(Socket socket);
  void OnAccept(const error_code& error, Socket socket);
  void ArmWake();
  void CloseAll();

  const std::shared_ptr<Loop> loop_;
  const size_t max_connections_;
  UnixSocketFile unix_socket_;
  Acceptor acceptor_;
  asio::steady_timer accept_pause_;
  bool accepting_ = false;  // an accept or its pause is under way
  bool accept_failing_ = false;
  std::optional<Socket> waiting_;  // accepted; the cap leaves no room for it yet
  uint16_t port_ = 0;

  asio::posix::stream_descriptor wake_event_;
  int wake_fd_ = -1;  // the same, for Wake
  std::atomic<bool> wake_pending_{false};
  std::function<void()> on_wake_;

  std::unordered_set<std::shared_ptr<asio::steady_timer>> timers_;
  bool destroying_ = false;
};

Server::Server(const HttpOptions& options, HeaderCheck check, Handler handler)
    : loop_(std::make_shared<Loop>()),
      max_connections_(static_cast<size_t>(MaxConnections(options))),
      acceptor_(loop_->io),
      accept_pause_(loop_->io),
      wake_event_(loop_->io) {
  loop_->options = options;
  loop_->check = std::move(check);
  loop_->handler = std::move(handler);
  loop_->room_made = [this] { Accept(); };
}

// Runs what is cancelled here, so that no handler is left holding the loop it waits in.
Server::~Server() {
  destroying_ = true;
  loop_->draining = true;
  loop_->room_made = nullptr;
  CloseAll();
  error_code ignored;
  acceptor_.close(ignored);
  wake_event_.close(ignored);
  accept_pause_.cancel();
  for (const auto& timer : timers_) timer->cancel();
  loop_->io.restart();
  loop_->io.poll();
  loop_->ended = true;
  loop_->check = nullptr;
  loop_->handler = nullptr;
}

Status Server::OpenTcp() {
  error_code error;
  tcp::resolver resolver(loop_->io);
  const auto flags = tcp::resolver::passive | tcp::resolver::numeric_service;
  const auto found =
      resolver.resolve(loop_->options.host, std::to_string(loop_->options.port), flags, error);
  if (error) return BindFailure(loop_->options, error);
  const tcp::endpoint endpoint = Preferred(found);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return BindFailure(loop_->options, error);
  tcp::endpoint bound;
  const auto local = acceptor_.local_endpoint(error);
  if (error || local.size() > bound.capacity()) return BindFailure(loop_->options, error);
  std::memcpy(bound.data(), local.data(), local.size());
  port_ = bound.port();
  return {};
}

Status Server::OpenUnix() {
  VIVACE_ASSIGN(const int fd, unix_socket_.Listen(loop_->options.uds));
  error_code error;
  acceptor_.assign(asio::local::stream_protocol(), fd, error);
  if (!error) return {};
  close(fd);
  return BindFailure(loop_->options, error);
}

Status Server::Open() {
  VIVACE_RETURN_IF_ERROR(loop_->options.uds.empty() ? OpenTcp() : OpenUnix());
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) {
    return Fail(ErrorCode::kIo, "out_of_descriptors", "", "cannot create an event descriptor");
  }
  wake_event_.assign(wake_fd_);
  ArmWake();
  Accept();
  return {};
}

// ---- Accepting ----

// At the cap a new client takes the place of the connection that has been idle longest; where all
// are busy it waits, and those behind it do so in the kernel's queue.
void Server::Accept() {
  if (waiting_) {
    const bool full = loop_->connections.size() >= max_connections_;
    if (full && loop_->idle.empty()) return;
    Socket socket = *std::exchange(waiting_, std::nullopt);
    if (full) loop_->idle.front()->Close();
    Admit(std::move(socket));
  }
  if (accepting_ || !acceptor_.is_open()) return;
  accepting_ = true;
  acceptor_.async_accept(
      [this](const error_code& error, Socket socket) { OnAccept(error, std::move(socket)); });
}

void Server::Admit(Socket socket) {
  auto connection = std::make_shared<Connection>(loop_, std::move(socket));
  loop_->connections.insert(connection);
  connection->Start();
}

void Server::OnAccept(const error_code& error, Socket socket) {
  if (!acceptor_.is_open()) return;
  if (!error) {
    accepting_ = false;
    accept_failing_ = false;
    waiting_ = std::move(socket);
    return Accept();
  }
  if (error == asio::error::connection_aborted) {
    accepting_ = false;
    return Accept();
  }
  if (!accept_failing_) {  // said once a spell
    log::Warn("cannot accept connections for now", {{"error", error.message()}});
  }
  accept_failing_ = true;
  accept_pause_.expires_after(std::chrono::milliseconds(kAcceptPauseMs));
  accept_pause_.async_wait([this](const error_code& cancelled) {
    accepting_ = false;
    if (!cancelled) Accept();
  });
}

// ---- From other threads ----

// The flag is cleared before the callback reads what the caller published, so no wake-up is lost.
void Server::Wake() {
  if (wake_pending_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

void Server::ArmWake() {
  wake_event_.async_wait(
      asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
        if (error) return;
        uint64_t count;
        [[maybe_unused]] const ssize_t taken = read(wake_fd_, &count, sizeof count);
        wake_pending_.exchange(false, std::memory_order_acq_rel);
        if (on_wake_) on_wake_();
        ArmWake();
      });
}

void Server::Post(std::function<void()> work) {
  asio::post(loop_->io, [this, work = std::move(work)] {
    if (!destroying_) work();
  });
}

void Server::After(int ms, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(loop_->io, std::chrono::milliseconds(ms));
  timers_.insert(timer);
  timer->async_wait([this, timer, work = std::move(work)](const error_code& error) {
    timers_.erase(timer);
    if (!error) work();
  });
}

// ---- Ending ----

void Server::BeginDrain() {
  loop_->draining = true;
  const std::vector<std::shared_ptr<Connection>> all(loop_->connections.begin(),
                                                     loop_->connections.end());
  for (const auto& connection : all) connection->BeginDrain();
}

void Server::CloseAll() {
  const std::vector<std::shared_ptr<Connection>> all(loop_->connections.begin(),
                                                     loop_->connections.end());
  for (const auto& connection : all) connection->Close();
}

void Server::Stop() {
  Post([this] {
    loop_->draining = true;
    error_code ignored;
    acceptor_.close(ignored);
    waiting_.reset();
    CloseAll();
    Post([this] { loop_->io.stop(); });  // behind the OnClose callbacks just posted
  });
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpOptions& options,
                                                       HeaderCheck check, Handler handler) {
  IgnoreSigPipe();
  auto server = std::make_unique<Server>(options, std::move(check), std::move(handler));
  VIVACE_RETURN_IF_ERROR(server->Open());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace vivace::server
