#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/limits.h"
#include "base/sse_reader.h"
#include "cli/chat_backend.h"

namespace vivace::cli {
namespace {

constexpr long kConnectTimeoutS = 10;

struct CurlDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One answer on its way in.
struct Exchange {
  SseReader reader;
  const std::function<void(std::string_view)>* on_text;
  const std::atomic<bool>* cancelled;
  std::string text;
  std::string error;  // the server's own sentence
  bool done = false;  // the closing [DONE] came
};

// The text of a chunk, or its error's message.
void TakeEvent(std::string_view data, Exchange* exchange) {
  if (data == "[DONE]") {
    exchange->done = true;
    return;
  }
  boost::system::error_code failed;
  const boost::json::value value = boost::json::parse(data, failed);
  if (failed) {
    exchange->error = "an event that is not JSON";
    return;
  }
  if (const auto* message = value.find_pointer("/error/message", failed)) {
    if (message->is_string()) exchange->error = message->get_string();
    return;
  }
  const auto* content = value.find_pointer("/choices/0/delta/content", failed);
  if (content == nullptr || !content->is_string()) return;
  exchange->text += content->get_string();
  (*exchange->on_text)(content->get_string());
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const bool sound = exchange->reader.Push(
      {data, size}, [exchange](std::string_view event) { TakeEvent(event, exchange); });
  return sound ? size : 0;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->cancelled->load() ? 1 : 0;
}

std::string Endpoint(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (!url.ends_with("/v1")) url += "/v1";
  return url + "/chat/completions";
}

class HttpBackend final : public ChatBackend {
 public:
  HttpBackend(std::string url, const ChatSampling& sampling, std::string api_key)
      : endpoint_(Endpoint(std::move(url))), sampling_(sampling), api_key_(std::move(api_key)) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  }

  Result<std::string> Reply(const boost::json::array& messages,
                            const std::function<void(std::string_view)>& on_text,
                            const std::atomic<bool>& cancelled) override {
    boost::json::object wanted = {
        {"messages", messages}, {"stream", true}, {"temperature", sampling_.temperature}};
    if (sampling_.max_tokens > 0) wanted["max_tokens"] = sampling_.max_tokens;
    const std::string body = boost::json::serialize(wanted);
    const std::unique_ptr<CURL, CurlDeleter> curl(curl_easy_init());
    const std::unique_ptr<curl_slist, CurlDeleter> headers(
        curl_slist_append(nullptr, "Content-Type: application/json"));
    if (!api_key_.empty()) {
      curl_slist_append(headers.get(), ("Authorization: Bearer " + api_key_).c_str());
    }
    Exchange exchange{
        .reader = {}, .on_text = &on_text, .cancelled = &cancelled, .text = {}, .error = {}};
    curl_easy_setopt(curl.get(), CURLOPT_URL, endpoint_.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, kConnectTimeoutS);
    curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, OnProgress);
    curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &exchange);
    curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
    const CURLcode code = curl_easy_perform(curl.get());
    long status = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_ABORTED_BY_CALLBACK) return std::move(exchange.text);
    if (code != CURLE_OK) {
      return Fail(ErrorCode::kIo, "no_answer", "", "{}: {}", endpoint_, curl_easy_strerror(code));
    }
    // An error answer is one JSON object, not events; it is what the reader could not make one of.
    if (status != 200) TakeEvent(exchange.reader.rest(), &exchange);
    if (status != 200 || !exchange.error.empty()) {
      return Fail(ErrorCode::kIo, "server_error", "", "{} answered {}: {}", endpoint_, status,
                  exchange.error.empty() ? "no reason given" : exchange.error);
    }
    if (!exchange.done) {
      return Fail(ErrorCode::kIo, "cut_answer", "", "{}: the answer was cut off", endpoint_);
    }
    return std::move(exchange.text);
  }

 private:
  const std::string endpoint_;
  const ChatSampling sampling_;
  const std::string api_key_;
};

}  // namespace

Result<std::unique_ptr<ChatBackend>> MakeHttpBackend(std::string url, const ChatSampling& sampling,
                                                     std::string api_key) {
  // It becomes part of a header.
  const bool sound =
      std::all_of(api_key.begin(), api_key.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!sound || api_key.size() > limits::kMaxApiKeyBytes) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "api-key",
                "the API key (--api-key or VIVACE_API_KEY) must be at most {} visible ASCII "
                "characters, without spaces",
                limits::kMaxApiKeyBytes);
  }
  return std::make_unique<HttpBackend>(std::move(url), sampling, std::move(api_key));
}

}  // namespace vivace::cli
