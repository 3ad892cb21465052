#include "load/client/transfer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"

namespace vivace::load {
namespace {

constexpr int32_t kReservedEvents = 4'096;
// From an answer's last event to the end of its body, which frees the connection for the next one.
constexpr int64_t kGraceNs = 100 * kNanosPerMs;
constexpr std::string_view kTimedOut =
    "no whole answer within the request's time (--request-timeout-sec)";

// Sentences without numbers, so that equal failures are counted together.
std::string_view SentenceOf(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return "the server's name cannot be resolved";
    case CURLE_COULDNT_CONNECT:
      return "cannot connect: nothing listens there, or it is refused";
    case CURLE_OPERATION_TIMEDOUT:
      return "cannot connect in time";
    case CURLE_GOT_NOTHING:
      return "the server closed the connection without an answer";
    case CURLE_PARTIAL_FILE:
      return "the connection broke before the answer was complete";
    case CURLE_RECV_ERROR:
      return "the connection broke while the answer came";
    case CURLE_SEND_ERROR:
      return "the connection broke while the request was sent";
    case CURLE_UNSUPPORTED_PROTOCOL:
      return "what answers does not speak HTTP";
    case CURLE_WEIRD_SERVER_REPLY:
      return "what answers does not speak HTTP";
    default:
      return curl_easy_strerror(code);
  }
}

}  // namespace

Transfer::Transfer(const Target& target, EventLoop* loop, CurlDriver* driver)
    : loop_(loop), driver_(driver), easy_(curl_easy_init()), headers_(HeadersOf(target)) {
  ApplyTarget(target, easy_.get());
  curl_easy_setopt(easy_.get(), CURLOPT_URL, UrlOf(target, target.endpoint).c_str());
  curl_easy_setopt(easy_.get(), CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(easy_.get(), CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_.get(), CURLOPT_POST, 1L);
}

Transfer::~Transfer() {
  if (!busy_) return;
  loop_->Cancel(&deadline_);
  loop_->Cancel(&grace_);
  driver_->Abort(easy_.get());
}

void Transfer::Send(Request request, RequestRecord* record, std::function<void()> done) {
  request_ = std::move(request);
  done_ = std::move(done);
  busy_ = true;
  answer_.Begin(record, request_.options);
  record->chunk_ns.reserve(
      static_cast<size_t>(std::clamp(record->wanted_output_tokens, 1, kReservedEvents)));
  curl_slist* headers = headers_.get();
  if (!request_.id.empty()) {
    id_line_ = "X-Request-Id: " + request_.id;
    id_header_ = {id_line_.data(), headers};
    headers = &id_header_;
  }
  curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request_.body.size()));
  curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDS, request_.body.c_str());
  record->sent_ns = SteadyNanos();
  if (request_.timeout_s > 0) {
    deadline_ = loop_->At(
        record->sent_ns + static_cast<int64_t>(request_.timeout_s * kNanosPerSecond), [this] {
          deadline_ = {};
          auto finished = std::move(done_);
          Abort(Outcome::kTimeout, kTimedOut);
          finished();
        });
  }
  driver_->Start(easy_.get(), this);
}

void Transfer::Abort(Outcome outcome, std::string_view reason) {
  driver_->Abort(easy_.get());
  done_ = nullptr;
  Finish(
      {.clean = false, .transport = {}, .has_outcome = true, .outcome = outcome, .reason = reason});
}

size_t Transfer::OnHeader(char* data, size_t, size_t size, void* self) {
  static_cast<Transfer*>(self)->answer_.OnHeader({data, size});
  return size;
}

size_t Transfer::OnBody(char* data, size_t, size_t size, void* self) {
  const int64_t now_ns = SteadyNanos();  // before anything is read of it
  auto* transfer = static_cast<Transfer*>(self);
  if (!transfer->answer_.OnBody({data, size}, now_ns)) return 0;
  if (transfer->answer_.saw_done() && transfer->grace_ == EventLoop::TimerKey{}) {
    transfer->WaitForEnd();
  }
  return size;
}

// A server that keeps the body open behind the last event keeps nobody waiting.
void Transfer::WaitForEnd() {
  grace_ = loop_->At(SteadyNanos() + kGraceNs, [this] {
    grace_ = {};
    auto finished = std::move(done_);
    Abort(Outcome::kCompleted, "");
    finished();
  });
}

void Transfer::OnDone(CURLcode code) {
  Finish({.clean = code == CURLE_OK,
          .transport = SentenceOf(code),
          .has_outcome = false,
          .outcome = {},
          .reason = {}});
  std::exchange(done_, nullptr)();
}

void Transfer::Finish(const AnswerReader::Ending& ending) {
  loop_->Cancel(&deadline_);
  loop_->Cancel(&grace_);
  answer_.End(ending, SteadyNanos());
  busy_ = false;
}

}  // namespace vivace::load
