// One place of a run: sends a request, reads its answer into its record, and is free for the next.
//
// The event loop's thread. Its easy handle, reader and buffers are kept from request to request.
#pragma once

#include <functional>
#include <string>

#include "load/client/answer_reader.h"
#include "load/client/curl_driver.h"
#include "load/client/target.h"

namespace vivace::load {

class Transfer final : CurlDriver::Transfer {
 public:
  struct Request {
    std::string body;
    std::string id;        // X-Request-Id; empty: none
    double timeout_s = 0;  // 0: none
    AnswerReader::Options options;
  };

  // `target`, `loop` and `driver` outlive it.
  Transfer(const Target& target, EventLoop* loop, CurlDriver* driver);
  ~Transfer() override;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sends now: sets sent_ns. `done` is called once, from the loop, when `record` is complete; not
  // after Abort. Only while not busy().
  void Send(Request request, RequestRecord* record, std::function<void()> done);
  // Ends the request as `outcome`; the record is complete when this returns. Not from inside
  // `done`.
  void Abort(Outcome outcome, std::string_view reason);

  bool busy() const { return busy_; }
  AnswerReader& answer() { return answer_; }

 private:
  static size_t OnHeader(char* data, size_t, size_t size, void* self);
  static size_t OnBody(char* data, size_t, size_t size, void* self);
  void OnDone(CURLcode code) override;
  void WaitForEnd();
  void Finish(const AnswerReader::Ending& ending);

  EventLoop* const loop_;
  CurlDriver* const driver_;
  const EasyHandle easy_;
  const HeaderList headers_;
  AnswerReader answer_;
  Request request_;
  std::string id_line_;
  curl_slist id_header_{};  // in front of headers_, for this request
  EventLoop::TimerKey deadline_{}, grace_{};
  std::function<void()> done_;
  bool busy_ = false;
};

}  // namespace vivace::load
