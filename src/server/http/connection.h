// One client's socket: reads requests, hands them over one at a time, writes their answers.
//
//   [kHandshake] -> kIdle -> kHead -> [kBody] -> kAnswering -> kIdle, or at any point -> kLinger ->
//   closed
//
// A read is armed in every phase, as a wait without a buffer: idle connections cost no read memory,
// and a client that leaves during kAnswering is seen at once. kLinger is the end of a connection
// that we close: what was answered is flushed, our side shut down, and input thrown away for a
// while, because closing on unread bytes would reset the connection and lose the answer.
//
// Owned by Loop::connections until closed, and by its pending operations. Loop thread only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/asio.h"
#include "server/http/chunked.h"
#include "server/http/http.h"
#include "server/http/loop.h"
#include "server/http/policy.h"
#include "server/http/stream.h"

namespace vivace::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Loop> loop, Socket socket);

  void Start();
  void Close() { Shut(/*reset=*/false); }
  // The server drains: an idle connection is closed, an upload refused.
  void BeginDrain();

  // The answering half (connection_answer.cc). `serial` names the exchange that calls; one whose
  // answer is complete, or whose connection is closed, is ignored.
  void Send(uint64_t serial, int status, const Headers& headers, std::string_view body);
  void BeginStream(uint64_t serial, int status, const Headers& headers);
  void Write(uint64_t serial, std::string_view bytes);
  void EndStream(uint64_t serial);
  void Cut(uint64_t serial);
  void OnClose(uint64_t serial, std::function<void()> callback);
  void Abandon(uint64_t serial);
  size_t pending_bytes(uint64_t serial) const;
  bool Current(uint64_t serial) const { return !closed_ && serial == serial_; }
  const std::shared_ptr<Loop>& loop() const { return loop_; }

 private:
  using ErrorCode = boost::system::error_code;
  enum class Phase { kHandshake, kIdle, kHead, kBody, kAnswering, kLinger };
  enum class Answer { kNone, kPending, kStreaming, kComplete };

  // Reading.
  void ArmRead();
  void ArmHangUp();
  void OnReadable();
  void ReadWhenWritable();
  void Handshake();
  void OnPeerClosed(bool orderly);
  void Advance();
  bool ReadHead();
  bool ReadBody();
  bool OnHead();
  bool Refuse(const HttpServer::Refusal& refusal);
  void Reject(const Rejection& rejection, const EarlyRequest& request);
  // The same of the request whose head was read.
  void Reject(const Rejection& rejection);
  // The same of one whose head, or what came of it, is `head`.
  void RejectHead(const Rejection& rejection, std::string_view head);
  std::string ErrorText(std::string_view path, const Rejection& rejection) const;
  bool BodyFits();
  void EndBody();
  void Dispatch();

  // Answering.
  void WriteHead(int status, const Headers& headers, size_t length, bool stream);
  void Respond(int status, const Headers& headers, std::string_view body);
  void CompleteAnswer();
  void FinishAnswer();

  // Writing.
  void Flush();
  void WriteSome();
  void AwaitWrite(IoState state);
  void OnFlushed();
  void ArmStallTimer(int64_t delay_nanos);

  // Ending.
  void BeIdle();
  void EndIdle();
  void SetDeadline(int ms);
  void OnDeadline();
  void Linger();
  void Shut(bool reset);

  const std::shared_ptr<Loop> loop_;
  Stream stream_;
  boost::asio::steady_timer deadline_;     // of the phase
  boost::asio::steady_timer stall_timer_;  // of the write
  uint64_t deadline_serial_ = 0;           // tells a set deadline from one that fired before

  Phase phase_ = Phase::kIdle;
  std::list<Connection*>::iterator idle_place_;  // in Loop::idle, while idle_
  bool idle_ = false;
  bool closed_ = false;
  bool keep_alive_ = true;
  bool peer_closed_ = false;  // sent FIN after a request we had answered: flush, then close

  bool read_armed_ = false;
  bool hang_up_armed_ = false;
  std::string in_;  // read and not yet used
  HeadScanner scanner_;
  ParsedHead head_;         // of the request being read or answered
  Headers answer_headers_;  // what the HeaderCheck adds to its answer
  ChunkDecoder chunks_{0};
  size_t counted_bytes_ = 0;  // of the body, in Loop::reading_bytes
  size_t discarded_bytes_ = 0;

  uint64_t serial_ = 0;  // of the exchange being answered
  Answer answer_ = Answer::kNone;
  bool active_ = false;     // counted in Loop::active_exchanges
  bool head_only_ = false;  // HEAD, or a status without a body
  bool chunked_ = false;
  std::function<void()> on_close_;

  std::string writing_;  // the kernel is taking this, from written_ on
  size_t written_ = 0;
  std::string out_;  // next
  bool flush_posted_ = false;
  bool write_busy_ = false;
  bool stall_armed_ = false;
  int64_t last_progress_nanos_ = 0;
};

}  // namespace vivace::server
