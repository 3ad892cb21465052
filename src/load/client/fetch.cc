#include "load/client/fetch.h"

#include "base/limits.h"

namespace vivace::load {
namespace {

size_t OnBody(char* data, size_t, size_t size, void* to) {
  auto* body = static_cast<std::string*>(to);
  if (body->size() + size > limits::kMaxLoadFetchBytes) return 0;
  body->append(data, size);
  return size;
}

EasyHandle MakeHandle() {
  InitCurl();
  return EasyHandle(curl_easy_init());
}

}  // namespace

Fetcher::Fetcher(const Target& target)
    : target_(target), easy_(MakeHandle()), headers_(HeadersOf(target)) {
  ApplyTarget(target_, easy_.get());
  curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, OnBody);
}

Result<Fetcher::Answer> Fetcher::Do(std::string_view path, const std::string* body,
                                    double timeout_s) {
  CURL* easy = easy_.get();
  Answer answer;
  const std::string url = UrlOf(target_, path);
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_s * 1'000));
  if (body != nullptr) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->c_str());
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  }
  const CURLcode code = curl_easy_perform(easy);
  if (code != CURLE_OK) {
    return Fail(ErrorCode::kIo, "no_answer", "base-url", "{}: {}", WithoutUserInfo(url),
                curl_easy_strerror(code));
  }
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  const char* redirect = nullptr;
  curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr) answer.redirect = WithoutUserInfo(redirect);
  return answer;
}

}  // namespace vivace::load
