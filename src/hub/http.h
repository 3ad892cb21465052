// One HTTP request at a time over libcurl: no redirect followed, nothing decoded, everything
// bounded. Connections are kept between requests. Proxies by the variables libcurl knows
// (https_proxy, no_proxy and so on). One thread at a time; blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vivace::hub {

struct HttpRequest {
  std::string url;
  bool head = false;
  std::vector<std::string> headers;  // "Name: value", checked by the caller
  int most_s = 0;                    // of the whole exchange; 0: only stalls end it
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string redirect_url;                    // absolute; empty: none

  std::string_view Header(const std::string& name) const;
};

// Takes the body of a 2xx answer piece by piece; an error ends the exchange with it.
using BodySink = std::function<Status(const HttpAnswer& head, std::string_view piece)>;

class HttpClient {
 public:
  // `stop` is asked some times a second; true ends the exchange. `stall_s`: see HubConfig.
  HttpClient(int stall_s, std::function<bool()> stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Whatever status comes is an answer. Reasons: interrupted; unreachable, stalled, cut (worth
  // another try); untrusted (TLS), bad_answer; and the sink's own.
  Result<HttpAnswer> Send(const HttpRequest& request, const BodySink& sink);

  const std::function<bool()>& stop() const { return stop_; }

 private:
  struct Handle;
  const int stall_s_;
  const std::function<bool()> stop_;
  std::unique_ptr<Handle> handle_;
};

// "https://host:port" in lower case, the port written out; empty for what is neither http nor
// https. Two URLs of one origin may see the same token.
std::string Origin(const std::string& url);

}  // namespace vivace::hub
