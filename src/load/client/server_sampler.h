// Reads the server's own /metrics once a second while a run goes on, on the run's own loop. A
// server without metrics is asked once. The loop's thread.
#pragma once

#include <string>
#include <vector>

#include "load/client/curl_driver.h"
#include "load/client/metrics_text.h"
#include "load/client/target.h"
#include "load/run_result.h"

namespace vivace::load {

class ServerSampler final : CurlDriver::Transfer {
 public:
  // `loop` and `driver` outlive it.
  ServerSampler(const Target& target, EventLoop* loop, CurlDriver* driver);
  ~ServerSampler() override { Stop(); }

  // The first reading, now, is what counters start from.
  void Start();
  void Stop();
  std::vector<ServerSample> Take() { return std::move(samples_); }

 private:
  static size_t OnBody(char* data, size_t, size_t size, void* self);
  void Ask();
  void OnDone(CURLcode code) override;

  EventLoop* const loop_;
  CurlDriver* const driver_;
  const EasyHandle easy_;
  const HeaderList headers_;
  EventLoop::TimerKey timer_{};
  std::string body_;
  MetricsReading start_;
  std::vector<ServerSample> samples_;
  int64_t start_ns_ = 0, asked_ns_ = 0;
  bool has_start_ = false;
  bool asking_ = false;
};

}  // namespace vivace::load
