// libcurl's multi interface on an EventLoop: any number of transfers, connections kept alive, one
// thread. (curl.se/libcurl/c/libcurl-multi.html, "multi_socket".)
//
// The caller owns the easy handles and sets them up; one that was started is not touched until
// OnDone, or Abort. All members: the loop's thread.
#pragma once

#include <curl/curl.h>

#include <memory>

#include "base/result.h"
#include "load/client/event_loop.h"

namespace vivace::load {

// curl_global_init, once a process; before any other call of curl.
void InitCurl();

// Handles are all `void` to curl, so each kind has a deleter of its own.
struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct HeaderDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using EasyHandle = std::unique_ptr<CURL, EasyDeleter>;
using HeaderList = std::unique_ptr<curl_slist, HeaderDeleter>;

class CurlDriver final : EventLoop::Handler {
 public:
  class Transfer {
   public:
    virtual ~Transfer() = default;
    // The transfer is over and its handle free again. May start others.
    virtual void OnDone(CURLcode code) = 0;
  };

  // `kept`: idle connections that are kept for the next requests.
  static Result<std::unique_ptr<CurlDriver>> Create(EventLoop* loop, int kept);
  ~CurlDriver() override;

  // Hands the request to a connection now.
  void Start(CURL* easy, Transfer* transfer);
  // Ends it at once, without OnDone. Not from inside a callback of curl.
  void Abort(CURL* easy);

 private:
  CurlDriver(EventLoop* loop, CURLM* multi) : loop_(loop), multi_(multi) {}

  static int OnSocket(CURL* easy, curl_socket_t fd, int what, void* self, void* known);
  static int OnTimer(CURLM* multi, long timeout_ms, void* self);
  void OnReady(int fd, uint32_t events) override;
  void Act(curl_socket_t fd, int what);
  void Drain();

  EventLoop* const loop_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  EventLoop::TimerKey timer_{};
  bool draining_ = false;
};

}  // namespace vivace::load
