// The head of an answer. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace vivace::server {

enum class AnswerFraming { kLength, kChunked, kUntilClose, kNoBody };

struct AnswerShape {
  int status = 200;
  AnswerFraming framing = AnswerFraming::kLength;
  size_t length = 0;      // of kLength
  bool http_1_0 = false;  // what the client speaks
  bool keep_alive = true;
};

// Status line and fields, the empty line included. Date, Connection, Content-Length and
// Transfer-Encoding are ours; those in `headers` are left out, as is any field whose name is no
// token or whose value holds a control character: an answer cannot be split.
std::string ResponseHead(const AnswerShape& shape, const Headers& headers, int64_t wall_seconds);

// One chunk of a chunked answer; `bytes` must not be empty (that would end it).
void AppendChunk(std::string& out, std::string_view bytes);

// 1xx, 204 and 304 never have a body.
bool StatusAllowsBody(int status);
std::string_view ReasonPhrase(int status);

}  // namespace vivace::server
