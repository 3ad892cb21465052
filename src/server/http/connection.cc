// The reading half: from bytes to a request handed over, and how connections end.
#include "server/http/connection.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/http/error_body.h"
#include "server/http/exchange.h"

namespace vivace::server {
namespace {

namespace asio = boost::asio;

constexpr int kLingerMs = 2'000;

constexpr Rejection kHeaderTimeout = {408, "header_timeout",
                                      "The request header did not arrive in time."};
constexpr Rejection kBodyTimeout = {408, "body_timeout",
                                    "The request body did not arrive in time."};
constexpr Rejection kTooManyBodies = {503, "server_is_overloaded",
                                      "The server is reading all the bodies it can hold; try again "
                                      "later."};
constexpr Rejection kShuttingDown = {503, "shutting_down", "The server is shutting down."};
constexpr Rejection kNotTls = {400, "tls_required",
                               "This port speaks TLS: use https:// in the address."};
constexpr Rejection kInternal = {500, "internal_error",
                                 "The server failed to answer this request."};

size_t MaxBodyBytes(const HttpOptions& options) {
  return options.max_body_bytes > 0 ? options.max_body_bytes : limits::kMaxBodyBytes;
}

// The path in a head that may be malformed: what stands between the first two spaces of its first
// line.
std::string_view PathIn(std::string_view head) {
  head = head.substr(std::min(head.find_first_not_of("\r\n"), head.size()));
  head = head.substr(0, head.find_first_of("\r\n"));
  const size_t method_end = head.find(' ');
  if (method_end == std::string_view::npos) return {};
  head = head.substr(method_end + 1);
  return head.substr(0, head.find_first_of(" ?"));
}

// The value of the first line of this name (lower case, with its colon) in such a head; empty if it
// is no plain text.
std::string_view FieldIn(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (!line.ends_with('\r') || ToLower(line.substr(0, name.size())) != name) continue;
    const auto field = SplitField(line.substr(0, line.size() - 1));
    if (!field) return {};
    const bool plain = std::all_of(field->second.begin(), field->second.end(),
                                   [](char c) { return c > 0x20 && c < 0x7F; });
    return plain ? field->second : std::string_view();
  }
  return {};
}

// Empty if there is none.
std::string_view RequestIdOf(const Headers& headers) {
  const auto found = std::find_if(headers.begin(), headers.end(), [](const auto& header) {
    return header.first == "x-request-id";
  });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

size_t MaxReadingBytes(const HttpOptions& options) {
  return options.max_reading_bytes > 0 ? options.max_reading_bytes : limits::kMaxReadingBytes;
}

}  // namespace

Connection::Connection(std::shared_ptr<Loop> loop, Socket socket)
    : loop_(std::move(loop)),
      stream_(std::move(socket), loop_->options.tls.get()),
      deadline_(loop_->io),
      stall_timer_(loop_->io) {}

void Connection::Start() {
  if (!stream_.Prepare()) return Close();
  if (stream_.secure()) {
    phase_ = Phase::kHandshake;
    SetDeadline(loop_->options.header_timeout_ms);
  } else {
    BeIdle();
  }
  ArmRead();
}

// ---- Reading ----

void Connection::ArmRead() {
  if (closed_ || read_armed_ || peer_closed_) return;
  if (phase_ == Phase::kAnswering && in_.size() >= limits::kMaxPipelinedBytes) {
    return ArmHangUp();
  }
  read_armed_ = true;
  stream_.WhenReadable([self = shared_from_this()](const ErrorCode& error) {
    self->read_armed_ = false;
    if (!error) self->OnReadable();
  });
}

// With a full read-ahead an orderly end is out of sight behind unread bytes; a reset is not.
void Connection::ArmHangUp() {
  if (hang_up_armed_) return;
  hang_up_armed_ = true;
  stream_.WhenBroken([self = shared_from_this()](const ErrorCode& error) {
    self->hang_up_armed_ = false;
    if (!error) self->Close();
  });
}

void Connection::OnReadable() {
  if (closed_) return;
  if (phase_ == Phase::kHandshake) return Handshake();
  const IoResult got = stream_.Read(loop_->scratch);
  if (got.state == IoState::kWantRead) return ArmRead();
  if (got.state == IoState::kWantWrite) return ReadWhenWritable();
  if (got.state != IoState::kDone) return OnPeerClosed(got.state == IoState::kEnd);
  if (phase_ == Phase::kLinger) {
    discarded_bytes_ += got.bytes;
    if (discarded_bytes_ > limits::kMaxDiscardBytes) return Close();
  } else {
    in_.append(loop_->scratch.data(), got.bytes);
    Advance();
  }
  ArmRead();
}

// TLS sends things of its own while it reads.
void Connection::ReadWhenWritable() {
  read_armed_ = true;
  stream_.WhenWritable([self = shared_from_this()](const ErrorCode& error) {
    self->read_armed_ = false;
    if (!error) self->OnReadable();
  });
}

void Connection::Handshake() {
  const IoState state = stream_.Handshake().state;
  switch (state) {
    case IoState::kDone:
      BeIdle();
      return ArmRead();
    case IoState::kWantRead:
      return ArmRead();
    case IoState::kWantWrite:
      return ReadWhenWritable();
    case IoState::kPlainHttp:
      stream_.GoPlain();
      return Reject(kNotTls);
    case IoState::kEnd:
    case IoState::kFailed:
      break;
  }
  log::Debug("TLS handshake failed");
  stream_.GoPlain();  // OpenSSL's alert is with the kernel; the client shall see it
  Linger();
  Flush();
}

// An unanswered client that has left is gone, half-closed or not; answers already made still go
// out.
void Connection::OnPeerClosed(bool orderly) {
  const bool flushing = answer_ == Answer::kComplete;
  if (!orderly || !flushing) return Close();
  peer_closed_ = true;
}

// Reads as far as the input allows.
void Connection::Advance() {
  bool more = true;
  while (more && !closed_) {
    switch (phase_) {
      case Phase::kHandshake:
        more = false;
        break;
      case Phase::kIdle:
        if (in_.empty()) {
          more = false;
          break;
        }
        EndIdle();
        phase_ = Phase::kHead;
        SetDeadline(loop_->options.header_timeout_ms);
        break;
      case Phase::kHead:
        more = ReadHead();
        break;
      case Phase::kBody:
        more = ReadBody();
        break;
      case Phase::kAnswering:
      case Phase::kLinger:
        return;
    }
  }
  if (peer_closed_ && answer_ != Answer::kComplete) Close();  // nothing more will come
}

bool Connection::ReadHead() {
  const HeadScanner::State state = scanner_.Scan(in_);
  if (state == HeadScanner::State::kMore) return false;
  if (state == HeadScanner::State::kRejected) {
    RejectHead(scanner_.rejection(), in_);
    return false;
  }
  auto head = ParseHead(scanner_.head(in_), MaxBodyBytes(loop_->options));
  if (!head) {
    RejectHead(head.error(), scanner_.head(in_));
    return false;
  }
  in_.erase(0, scanner_.consumed());
  scanner_.Reset();
  head_ = std::move(*head);
  return OnHead();
}

bool Connection::OnHead() {
  keep_alive_ = head_.request.keep_alive;
  head_only_ = head_.request.method == "HEAD";
  answer_headers_.clear();
  head_.request.arrived_ns = SteadyNanos();
  if (loop_->check) {
    try {
      HttpServer::Refusal verdict = loop_->check(head_.request);
      if (verdict.status != 0) return Refuse(verdict);
      head_.request.ticket = std::move(verdict.ticket);
      answer_headers_ = std::move(verdict.headers);
    } catch (const std::exception& e) {
      log::Error("header check threw", {{"what", e.what()}});
      Reject(kInternal);
      return false;
    }
  }
  if (head_.framing == BodyFraming::kNone) {
    Dispatch();
    return true;
  }
  phase_ = Phase::kBody;
  chunks_ = ChunkDecoder(MaxBodyBytes(loop_->options));
  SetDeadline(loop_->options.body_timeout_ms);
  if (head_.expect_continue && in_.empty()) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    Flush();
  }
  return true;
}

// Keeps the connection if there is no body to skip, or it is here already.
bool Connection::Refuse(const HttpServer::Refusal& refusal) {
  log::Info(refusal.status < 400 ? "request answered from its header" : "request refused",
            {{"id", RequestIdOf(refusal.headers)},
             {"method", head_.request.method},
             {"path", head_.request.path},
             {"status", refusal.status}});
  const bool skippable =
      head_.framing == BodyFraming::kNone ||
      (head_.framing == BodyFraming::kLength && in_.size() >= head_.content_length);
  if (skippable) in_.erase(0, head_.content_length);
  keep_alive_ = keep_alive_ && skippable;
  SetDeadline(0);
  phase_ = Phase::kAnswering;
  Respond(refusal.status, refusal.headers, refusal.body);
  if (!skippable) Linger();
  return skippable;
}

void Connection::Reject(const Rejection& rejection) {
  const HttpRequest& request = head_.request;
  Reject(rejection, {request.path, request.header("origin"), request.header("x-request-id")});
}

void Connection::RejectHead(const Rejection& rejection, std::string_view head) {
  Reject(rejection, {PathIn(head), FieldIn(head, "origin:"), FieldIn(head, "x-request-id:")});
}

// `request` may point into what this clears.
void Connection::Reject(const Rejection& rejection, const EarlyRequest& request) {
  const std::string text = ErrorText(request.path, rejection);
  Headers headers = {{"Content-Type", "application/json"}};
  if (loop_->options.error_headers) {
    for (auto& header : loop_->options.error_headers(request)) headers.push_back(std::move(header));
  }
  log::Info("request refused",
            {{"id", RequestIdOf(headers)}, {"status", rejection.status}, {"code", rejection.code}});
  EndBody();
  head_ = {};
  keep_alive_ = false;
  if (rejection.status == 503) {
    headers.emplace_back("Retry-After", std::to_string(loop_->retry_after_s));
  }
  Respond(rejection.status, headers, text);
  Linger();
}

std::string Connection::ErrorText(std::string_view path, const Rejection& rejection) const {
  std::string message(rejection.message);
  if (rejection.max_body_bytes > 0) {
    message +=
        fmt::format(" At most {} bytes are taken (--max-body-bytes).", rejection.max_body_bytes);
  }
  const auto& write = loop_->options.error_body;
  return write ? write(path, rejection.status, rejection.code, message)
               : ErrorBody(rejection.status, message, rejection.code);
}

bool Connection::ReadBody() {
  std::string& body = head_.request.body;
  if (head_.framing == BodyFraming::kLength) {
    const size_t bytes = std::min(head_.content_length - body.size(), in_.size());
    body.append(in_, 0, bytes);
    in_.erase(0, bytes);
    if (!BodyFits()) return false;
    if (body.size() < head_.content_length) return false;
    Dispatch();
    return true;
  }
  std::string_view rest = in_;
  const ChunkDecoder::State state = chunks_.Feed(rest, body);
  in_.erase(0, in_.size() - rest.size());
  if (!BodyFits()) return false;
  if (state == ChunkDecoder::State::kMore) return false;
  if (state == ChunkDecoder::State::kRejected) {
    Reject(chunks_.rejection());
    return false;
  }
  Dispatch();
  return true;
}

// Counts what came of the body; past what all connections may hold together it is refused. The one
// bound on chunked bodies, whose size no header tells, and on bodies that no route asked for.
bool Connection::BodyFits() {
  loop_->reading_bytes += head_.request.body.size() - counted_bytes_;
  counted_bytes_ = head_.request.body.size();
  if (loop_->reading_bytes <= MaxReadingBytes(loop_->options)) return true;
  Reject(kTooManyBodies);
  return false;
}

void Connection::EndBody() { loop_->reading_bytes -= std::exchange(counted_bytes_, 0); }

void Connection::Dispatch() {
  EndBody();
  SetDeadline(0);
  phase_ = Phase::kAnswering;
  answer_ = Answer::kPending;
  active_ = true;
  ++loop_->active_exchanges;
  auto exchange =
      std::make_shared<ConnectionExchange>(shared_from_this(), ++serial_, std::move(head_.request));
  try {
    loop_->handler(std::move(exchange));
  } catch (const std::exception& e) {  // dropped unanswered, it becomes a 500
    log::Error("request handler threw", {{"what", e.what()}});
  }
  if (peer_closed_ && answer_ != Answer::kComplete) Close();
}

// ---- Ending ----

// Restarts the phase's clock; 0 stops it.
void Connection::SetDeadline(int ms) {
  const uint64_t serial = ++deadline_serial_;
  if (ms <= 0) {
    deadline_.cancel();
    return;
  }
  deadline_.expires_after(std::chrono::milliseconds(ms));
  deadline_.async_wait([self = shared_from_this(), serial](const ErrorCode& error) {
    if (!error && serial == self->deadline_serial_ && !self->closed_) self->OnDeadline();
  });
}

void Connection::OnDeadline() {
  switch (phase_) {
    case Phase::kHead:
      RejectHead(kHeaderTimeout, in_);
      break;
    case Phase::kBody:
      Reject(kBodyTimeout);
      break;
    case Phase::kHandshake:
    case Phase::kIdle:
    case Phase::kAnswering:
    case Phase::kLinger:
      Close();
      break;
  }
}

void Connection::BeginDrain() {
  if (phase_ == Phase::kIdle) Close();
  if (phase_ == Phase::kBody) Reject(kShuttingDown);
}

void Connection::BeIdle() {
  phase_ = Phase::kIdle;
  idle_place_ = loop_->idle.insert(loop_->idle.end(), this);
  idle_ = true;
  SetDeadline(loop_->options.idle_timeout_ms);
}

void Connection::EndIdle() {
  if (std::exchange(idle_, false)) loop_->idle.erase(idle_place_);
}

void Connection::Linger() {
  phase_ = Phase::kLinger;
  in_.clear();
  in_.shrink_to_fit();
  SetDeadline(kLingerMs);
  ArmRead();
}

void Connection::Shut(bool reset) {
  if (closed_) return;
  closed_ = true;
  stream_.Close(reset);
  deadline_.cancel();
  stall_timer_.cancel();
  EndIdle();
  EndBody();
  head_ = {};  // releases the ticket
  out_.clear();
  if (active_) --loop_->active_exchanges;
  active_ = false;
  if (on_close_ && answer_ != Answer::kComplete) asio::post(loop_->io, std::move(on_close_));
  on_close_ = nullptr;
  loop_->connections.erase(shared_from_this());
  if (loop_->room_made) loop_->room_made();
}

}  // namespace vivace::server
