#include "load/client/curl_driver.h"

#include <sys/epoll.h>

#include <mutex>

#include "base/clock.h"

namespace vivace::load {

void InitCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Result<std::unique_ptr<CurlDriver>> CurlDriver::Create(EventLoop* loop, int kept) {
  InitCurl();
  CURLM* multi = curl_multi_init();
  if (multi == nullptr) {
    return Fail(ErrorCode::kResourceExhausted, "no_memory", "", "libcurl cannot be started");
  }
  std::unique_ptr<CurlDriver> driver(new CurlDriver(loop, multi));
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, OnSocket);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, driver.get());
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, OnTimer);
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, driver.get());
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(kept));
  return driver;
}

// The multi handle closes its connections as it goes, and calls back while it does.
CurlDriver::~CurlDriver() {
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, nullptr);
  loop_->Cancel(&timer_);
}

void CurlDriver::Start(CURL* easy, Transfer* transfer) {
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
  curl_multi_add_handle(multi_.get(), easy);
  Act(CURL_SOCKET_TIMEOUT, 0);  // connects or sends before we wait again
}

void CurlDriver::Abort(CURL* easy) { curl_multi_remove_handle(multi_.get(), easy); }

int CurlDriver::OnSocket(CURL*, curl_socket_t fd, int what, void* self, void*) {
  auto* driver = static_cast<CurlDriver*>(self);
  if (what == CURL_POLL_REMOVE) {
    driver->loop_->Unwatch(fd);
    return 0;
  }
  const uint32_t events = ((what & CURL_POLL_IN) != 0 ? uint32_t{EPOLLIN} : 0) |
                          ((what & CURL_POLL_OUT) != 0 ? uint32_t{EPOLLOUT} : 0);
  driver->loop_->Watch(fd, events, driver);
  return 0;
}

int CurlDriver::OnTimer(CURLM*, long timeout_ms, void* self) {
  auto* driver = static_cast<CurlDriver*>(self);
  driver->loop_->Cancel(&driver->timer_);
  if (timeout_ms < 0) return 0;
  driver->timer_ = driver->loop_->At(SteadyNanos() + timeout_ms * kNanosPerMs, [driver] {
    driver->timer_ = {};
    driver->Act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlDriver::OnReady(int fd, uint32_t events) {
  int what = 0;
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
  if ((events & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
  Act(fd, what);
}

void CurlDriver::Act(curl_socket_t fd, int what) {
  int running = 0;
  curl_multi_socket_action(multi_.get(), fd, what, &running);
  if (!draining_) Drain();
}

// OnDone may start others: what they leave is found by the loop here, not by a call within a call.
void CurlDriver::Drain() {
  draining_ = true;
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;  // `message` goes with the handle
    Transfer* transfer = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    curl_multi_remove_handle(multi_.get(), easy);
    transfer->OnDone(code);
  }
  draining_ = false;
}

}  // namespace vivace::load
