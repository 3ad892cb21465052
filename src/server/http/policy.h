// What an HTTP request may look like: stricter than RFC 9112, so that no proxy in front of us can
// read the same bytes as another request (smuggling). Pure functions over bytes; no sockets, no
// clock.
//
// A head goes through two steps. HeadScanner finds its end as bytes arrive and refuses at the first
// byte that can be no part of a head: control characters, bare CR or LF, anything over a limit.
// ParseHead then reads the finished head once, into the only parsed form there is. Refused besides:
// a version other than 1.0 and 1.1, obs-fold, space before a colon, two of a field that may stand
// once, both lengths at once, any Transfer-Encoding but `chunked`, a Content-Length that is not
// plain digits, a target that is not a plain absolute path, a body in a Content-Encoding. A refused
// request is answered and its connection closed: where the next one starts is unknown.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "server/http/http.h"

namespace vivace::server {

// All text is ours, never the client's.
struct Rejection {
  int status = 0;
  std::string_view code;
  std::string_view message;
  size_t max_body_bytes = 0;  // what the body has more of; 0: it is about something else
};

Rejection BodyTooLarge(size_t max_body_bytes);

enum class BodyFraming { kNone, kLength, kChunked };

struct ParsedHead {
  HttpRequest request;  // all but the body
  BodyFraming framing = BodyFraming::kNone;
  size_t content_length = 0;  // of kLength; at least 1
  bool expect_continue = false;
  bool http_1_0 = false;
};

// Looks at each byte of a connection's input once.
class HeadScanner {
 public:
  enum class State { kMore, kDone, kRejected };

  // `input` is all that came since the last Reset, what earlier calls saw included.
  State Scan(std::string_view input);

  // After kDone: the head with its empty line, and how much of `input` it and one empty line before
  // it (RFC 9112, 2.2) take.
  std::string_view head(std::string_view input) const {
    return input.substr(begin_, position_ - begin_);
  }
  size_t consumed() const { return position_; }
  // After kRejected.
  const Rejection& rejection() const { return rejection_; }

  void Reset() { *this = HeadScanner(); }

 private:
  State Reject(const Rejection& rejection);
  std::optional<State> EndLine();

  size_t begin_ = 0;
  size_t position_ = 0;
  size_t line_begin_ = 0;
  size_t lines_ = 0;
  bool after_cr_ = false;
  Rejection rejection_;
};

// `head` is what a HeadScanner found; any other bytes are refused or parsed, never trusted.
tl::expected<ParsedHead, Rejection> ParseHead(std::string_view head, size_t max_body_bytes);

// "name: value" without its line end; also for trailers. The value is trimmed.
tl::expected<std::pair<std::string_view, std::string_view>, Rejection> SplitField(
    std::string_view line);

// Whether the field decides framing, routing or rights, and so may stand neither twice nor in a
// trailer. `name` in lower case.
bool IsSingletonField(std::string_view name);

std::string ToLower(std::string_view text);  // ASCII
int HexValue(char c);                        // -1: not a hexadecimal digit
bool IsToken(std::string_view text);         // a field name or method by RFC 9110, 5.6.2

}  // namespace vivace::server
