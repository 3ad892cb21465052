#include "load/client/server_sampler.h"

#include "base/clock.h"
#include "base/limits.h"

namespace vivace::load {
namespace {

constexpr int64_t kIntervalNs = kNanosPerSecond;
constexpr long kTimeoutMs = 5'000;

}  // namespace

ServerSampler::ServerSampler(const Target& target, EventLoop* loop, CurlDriver* driver)
    : loop_(loop), driver_(driver), easy_(curl_easy_init()), headers_(HeadersOf(target)) {
  ApplyTarget(target, easy_.get());
  curl_easy_setopt(easy_.get(), CURLOPT_URL, UrlOf(target, "/metrics").c_str());
  curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_.get(), CURLOPT_TIMEOUT_MS, kTimeoutMs);
}

void ServerSampler::Start() {
  start_ns_ = SteadyNanos();
  Ask();
}

void ServerSampler::Stop() {
  loop_->Cancel(&timer_);
  if (std::exchange(asking_, false)) driver_->Abort(easy_.get());
}

void ServerSampler::Ask() {
  body_.clear();
  asking_ = true;
  asked_ns_ = SteadyNanos();
  driver_->Start(easy_.get(), this);
}

size_t ServerSampler::OnBody(char* data, size_t, size_t size, void* self) {
  std::string& body = static_cast<ServerSampler*>(self)->body_;
  if (body.size() + size > limits::kMaxLoadFetchBytes) return 0;
  body.append(data, size);
  return size;
}

void ServerSampler::OnDone(CURLcode code) {
  asking_ = false;
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  MetricsReading reading;
  if (code == CURLE_OK && status == 200) reading = ParseMetrics(body_);
  if (reading.empty() && !has_start_) return;  // it does not tell
  if (!has_start_) start_ = reading;
  has_start_ = true;
  if (!reading.empty() && samples_.size() < limits::kMaxLoadSamples) {
    const double at_s = static_cast<double>(asked_ns_ - start_ns_) / kNanosPerSecond;
    samples_.push_back(SampleOf(reading, start_, at_s));
  }
  timer_ = loop_->At(asked_ns_ + kIntervalNs, [this] {
    timer_ = {};
    Ask();
  });
}

}  // namespace vivace::load
