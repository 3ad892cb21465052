#include "hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/limits.h"
#include "base/trim.h"

namespace vivace::hub {
namespace {

constexpr long kConnectTimeoutS = 15;
constexpr long kSlowestBytesPerSecond = 64;

// One exchange on its way.
struct Exchange {
  const BodySink* sink;
  const std::function<bool()>* stop;
  HttpAnswer answer;
  size_t header_bytes = 0;
  Status failed;  // the sink's, or ours
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const std::string_view line(data, size);
  exchange->header_bytes += size;
  if (exchange->header_bytes > limits::kHubHeaderBytes) {
    exchange->failed =
        Fail(ErrorCode::kCorruptData, "bad_answer", "",
             "the hub's answer has more than {} bytes of headers", limits::kHubHeaderBytes);
    return 0;
  }
  if (line.starts_with("HTTP/")) {  // again after a 100 Continue
    exchange->answer.headers.clear();
    return size;
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    exchange->answer.headers[Lower(Trimmed(line.substr(0, colon)))] =
        Trimmed(line.substr(colon + 1));
  }
  return size;
}

long StatusOf(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

// Only the text of a 2xx is of use; the rest of a refusal is read past, for the connection's sake.
struct BodyTaker {
  Exchange* exchange;
  CURL* curl;
};

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto* taker = static_cast<BodyTaker*>(user);
  Exchange* exchange = taker->exchange;
  exchange->answer.status = static_cast<int>(StatusOf(taker->curl));
  if (exchange->answer.status / 100 != 2) {
    exchange->header_bytes += size;
    return exchange->header_bytes <= limits::kHubHeaderBytes ? size : 0;
  }
  exchange->failed = (*exchange->sink)(exchange->answer, {data, size});
  return exchange->failed ? size : 0;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<Exchange*>(user)->stop)() ? 1 : 0;
}

// What a transport failure means to a person, and whether another try may help (by the reason).
tl::unexpected<Error> TransportError(CURLcode code, const std::string& url, const char* details) {
  const std::string host = Origin(url);
  const std::string why = *details != '\0' ? details : curl_easy_strerror(code);
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return Fail(ErrorCode::kUnavailable, "interrupted", "", "stopped");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return Fail(ErrorCode::kIo, "unreachable", "", "cannot reach {}: {}", host, why);
    case CURLE_OPERATION_TIMEDOUT:
      return Fail(ErrorCode::kIo, "stalled", "", "{} stopped answering: {}", host, why);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
      return Fail(ErrorCode::kIo, "untrusted", "", "no trusted connection to {}: {}", host, why);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_WEIRD_SERVER_REPLY:
      return Fail(ErrorCode::kCorruptData, "bad_answer", "", "{}: {}", host, why);
    default:
      return Fail(ErrorCode::kIo, "cut", "", "the connection to {} broke: {}", host, why);
  }
}

}  // namespace

std::string_view HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

struct HttpClient::Handle {
  Handle() : curl(curl_easy_init()) {}
  ~Handle() { curl_easy_cleanup(curl); }
  CURL* curl;
};

HttpClient::HttpClient(int stall_s, std::function<bool()> stop)
    : stall_s_(stall_s), stop_(std::move(stop)) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  handle_ = std::make_unique<Handle>();
}

HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::Send(const HttpRequest& request, const BodySink& sink) {
  CURL* curl = handle_->curl;
  curl_easy_reset(curl);  // keeps the connections
  curl_slist* list = curl_slist_append(nullptr, "Accept-Encoding: identity");
  for (const std::string& header : request.headers) list = curl_slist_append(list, header.c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list,
                                                                            &curl_slist_free_all);
  Exchange exchange{
      .sink = &sink, .stop = &stop_, .answer = {}, .header_bytes = 0, .failed = Status()};
  BodyTaker taker{&exchange, curl};
  char details[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOBODY, request.head ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "vivace/" VIVACE_VERSION);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's own answer is not ours
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, std::min<long>(kConnectTimeoutS, stall_s_));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_s_));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, static_cast<long>(request.most_s));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &taker);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (!exchange.failed) return tl::unexpected<Error>(std::move(exchange.failed.error()));
  exchange.answer.status = static_cast<int>(StatusOf(curl));
  const bool refused = exchange.answer.status >= 300;  // its body matters to nobody
  if (code != CURLE_OK && !(refused && code != CURLE_ABORTED_BY_CALLBACK)) {
    return TransportError(code, request.url, details);
  }
  char* redirect = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr) exchange.answer.redirect_url = redirect;
  return std::move(exchange.answer);
}

std::string Origin(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), &curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
      return std::string();
    std::string copy = Lower(text);
    curl_free(text);
    return copy;
  };
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return {};
  return fmt::format("{}://{}:{}", scheme, part(CURLUPART_HOST), part(CURLUPART_PORT));
}

}  // namespace vivace::hub
