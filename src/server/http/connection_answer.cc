// The answering half of a connection: from Exchange calls to bytes the kernel has taken.
#include <chrono>

#include "base/clock.h"
#include "server/http/connection.h"
#include "server/http/exchange.h"
#include "server/http/response_head.h"

namespace vivace::server {
namespace {

namespace asio = boost::asio;

constexpr size_t kKeptBufferBytes = 64 * 1024;  // larger ones are given back once written

}  // namespace

// Posted, never direct: the last reference may go inside any call of ours, or on another thread.
ConnectionExchange::~ConnectionExchange() {
  if (connection_->loop()->ended) return;
  asio::post(connection_->loop()->io,
             [connection = connection_, serial = serial_] { connection->Abandon(serial); });
}

// ---- Answering ----

void Connection::Send(uint64_t serial, int status, const Headers& headers, std::string_view body) {
  if (!Current(serial) || answer_ != Answer::kPending) return;
  Respond(status, headers, body);
}

void Connection::Respond(int status, const Headers& headers, std::string_view body) {
  WriteHead(status, headers, body.size(), /*stream=*/false);
  if (!head_only_) out_ += body;
  CompleteAnswer();
}

void Connection::BeginStream(uint64_t serial, int status, const Headers& headers) {
  if (!Current(serial) || answer_ != Answer::kPending) return;
  WriteHead(status, headers, 0, /*stream=*/true);
  answer_ = Answer::kStreaming;
  Flush();
}

void Connection::WriteHead(int status, const Headers& headers, size_t length, bool stream) {
  AnswerShape shape;
  shape.status = status;
  shape.length = length;
  shape.http_1_0 = head_.http_1_0;
  if (!StatusAllowsBody(status)) {
    shape.framing = AnswerFraming::kNoBody;
    head_only_ = true;
  } else if (stream) {
    shape.framing = head_.http_1_0 ? AnswerFraming::kUntilClose : AnswerFraming::kChunked;
    if (head_.http_1_0) keep_alive_ = false;
  }
  if (loop_->draining) keep_alive_ = false;
  shape.keep_alive = keep_alive_;
  chunked_ = shape.framing == AnswerFraming::kChunked;
  if (answer_headers_.empty()) {
    out_ += ResponseHead(shape, headers, WallSeconds());
    return;
  }
  Headers all = headers;
  all.insert(all.end(), answer_headers_.begin(), answer_headers_.end());
  out_ += ResponseHead(shape, all, WallSeconds());
}

void Connection::Write(uint64_t serial, std::string_view bytes) {
  if (!Current(serial) || answer_ != Answer::kStreaming || bytes.empty() || head_only_) return;
  if (chunked_) {
    AppendChunk(out_, bytes);
  } else {
    out_ += bytes;
  }
  Flush();
}

void Connection::EndStream(uint64_t serial) {
  if (!Current(serial) || answer_ != Answer::kStreaming) return;
  if (chunked_ && !head_only_) out_ += "0\r\n\r\n";
  CompleteAnswer();
}

void Connection::CompleteAnswer() {
  answer_ = Answer::kComplete;
  // Its captures may hold the exchange we are called through: they go once that call is over.
  if (on_close_) asio::post(loop_->io, [done = std::move(on_close_)] {});
  on_close_ = nullptr;
  Flush();
}

void Connection::Cut(uint64_t serial) {
  if (Current(serial)) Shut(/*reset=*/true);
}

void Connection::OnClose(uint64_t serial, std::function<void()> callback) {
  if (serial != serial_ || answer_ == Answer::kComplete || loop_->ended) return;
  if (closed_) {
    asio::post(loop_->io, std::move(callback));
  } else {
    on_close_ = std::move(callback);
  }
}

void Connection::Abandon(uint64_t serial) {
  if (!Current(serial)) return;
  if (answer_ == Answer::kStreaming) return Shut(/*reset=*/true);
  if (answer_ != Answer::kPending) return;
  Respond(500, {{"Content-Type", "application/json"}},
          ErrorText(head_.request.path,
                    {500, "internal_error", "The server failed to answer this request."}));
}

size_t Connection::pending_bytes(uint64_t serial) const {
  return Current(serial) ? writing_.size() - written_ + out_.size() : 0;
}

// The answer is wholly with the kernel: on to the next request.
void Connection::FinishAnswer() {
  answer_ = Answer::kNone;
  if (active_) --loop_->active_exchanges;
  active_ = false;
  head_ = {};
  answer_headers_.clear();
  head_only_ = false;
  if (!keep_alive_ || loop_->draining) {
    Linger();
    return OnFlushed();
  }
  BeIdle();
  Advance();
  ArmRead();
  if (idle_ && loop_->room_made) loop_->room_made();
}

// ---- Writing ----

// Posted, so that everything written in one turn of the loop goes out in one write.
void Connection::Flush() {
  if (closed_ || flush_posted_ || write_busy_) return;
  flush_posted_ = true;
  asio::post(loop_->io, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->WriteSome();
  });
}

// As far as the kernel takes it now; the rest once it takes more.
void Connection::WriteSome() {
  while (!closed_ && !write_busy_) {
    if (written_ == writing_.size()) {
      if (writing_.capacity() > kKeptBufferBytes) writing_ = std::string();
      writing_.clear();
      written_ = 0;
      if (out_.empty()) return OnFlushed();
      writing_.swap(out_);
    }
    const IoResult sent = stream_.Write(std::string_view(writing_).substr(written_));
    if (sent.state == IoState::kWantRead || sent.state == IoState::kWantWrite) {
      return AwaitWrite(sent.state);
    }
    if (sent.state != IoState::kDone) return Close();  // the client is gone
    written_ += sent.bytes;
  }
}

void Connection::AwaitWrite(IoState state) {
  write_busy_ = true;
  last_progress_nanos_ = SteadyNanos();
  if (!stall_armed_) ArmStallTimer(int64_t{loop_->options.write_stall_ms} * 1'000'000);
  auto ready = [self = shared_from_this()](const ErrorCode& error) {
    self->write_busy_ = false;
    if (!error) self->WriteSome();
  };
  if (state == IoState::kWantRead) {
    stream_.WhenReadable(std::move(ready));
  } else {
    stream_.WhenWritable(std::move(ready));
  }
}

void Connection::OnFlushed() {
  if (phase_ == Phase::kLinger) {
    answer_ = Answer::kNone;
    if (peer_closed_) return Close();
    if (!stream_.EndSending()) Close();
    return;
  }
  if (answer_ == Answer::kComplete) FinishAnswer();
}

// One timer for many writes: it looks back when it fires instead of moving with every write.
void Connection::ArmStallTimer(int64_t delay_nanos) {
  if (delay_nanos <= 0) return;
  stall_armed_ = true;
  stall_timer_.expires_after(std::chrono::nanoseconds(delay_nanos));
  stall_timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    self->stall_armed_ = false;
    if (error || self->closed_ || !self->write_busy_) return;
    const int64_t limit = int64_t{self->loop_->options.write_stall_ms} * 1'000'000;
    const int64_t left = self->last_progress_nanos_ + limit - SteadyNanos();
    if (left <= 0) return self->Shut(/*reset=*/true);
    self->ArmStallTimer(left);
  });
}

}  // namespace vivace::server
