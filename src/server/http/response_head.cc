#include "server/http/response_head.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "server/http/policy.h"

namespace vivace::server {
namespace {

struct Reason {
  int status;
  std::string_view phrase;
};

constexpr Reason kReasons[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

constexpr std::string_view kOurs[] = {"connection", "content-length",    "date",
                                      "keep-alive", "transfer-encoding", "upgrade"};

bool MaySend(std::string_view name, std::string_view value) {
  const bool clean = std::all_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
  if (!clean || !IsToken(name)) return false;
  const std::string lower = ToLower(name);
  return std::find(std::begin(kOurs), std::end(kOurs), lower) == std::end(kOurs);
}

// RFC 9110, 5.6.7; not strftime, which follows the locale.
void AppendDate(std::string& out, int64_t wall_seconds) {
  constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t seconds = wall_seconds;
  tm utc;
  gmtime_r(&seconds, &utc);
  fmt::format_to(std::back_inserter(out), "Date: {}, {:02} {} {} {:02}:{:02}:{:02} GMT\r\n",
                 kDays[utc.tm_wday], utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900,
                 utc.tm_hour, utc.tm_min, utc.tm_sec);
}

void AppendFraming(std::string& out, const AnswerShape& shape) {
  switch (shape.framing) {
    case AnswerFraming::kLength:
      fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", shape.length);
      break;
    case AnswerFraming::kChunked:
      out += "Transfer-Encoding: chunked\r\n";
      break;
    case AnswerFraming::kUntilClose:
    case AnswerFraming::kNoBody:
      break;
  }
}

}  // namespace

bool StatusAllowsBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string_view ReasonPhrase(int status) {
  const auto* reason = std::find_if(std::begin(kReasons), std::end(kReasons),
                                    [status](const Reason& r) { return r.status == status; });
  return reason == std::end(kReasons) ? "" : reason->phrase;
}

std::string ResponseHead(const AnswerShape& shape, const Headers& headers, int64_t wall_seconds) {
  std::string out;
  out.reserve(256);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", shape.status,
                 ReasonPhrase(shape.status));
  AppendDate(out, wall_seconds);
  AppendFraming(out, shape);
  if (!shape.keep_alive) {
    out += "Connection: close\r\n";
  } else if (shape.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  for (const auto& [name, value] : headers) {
    if (MaySend(name, value)) out.append(name).append(": ").append(value).append("\r\n");
  }
  return out += "\r\n";
}

void AppendChunk(std::string& out, std::string_view bytes) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out.append(bytes).append("\r\n");
}

}  // namespace vivace::server
