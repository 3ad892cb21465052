// Decodes a chunked body, strictly: what a lenient reader could frame otherwise is refused. Pure.
// Trailers are checked and thrown away; one that would frame, route or authorise is refused.
// Memory: the decoded body grows by what arrives; a line is held to its limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/http/policy.h"

namespace vivace::server {

class ChunkDecoder {
 public:
  enum class State { kMore, kDone, kRejected };

  explicit ChunkDecoder(size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  // Takes what it can off the front of `input` and appends the decoded bytes to `body`. After kDone
  // what is left of `input` belongs to the next request.
  State Feed(std::string_view& input, std::string& body);

  // After kRejected.
  const Rejection& rejection() const { return rejection_; }

 private:
  enum class At { kSizeLine, kData, kDataEnd, kTrailerLine };

  State Reject(const Rejection& rejection);
  State TakeLineByte(char c, size_t body_bytes);
  State EndLine(size_t body_bytes);
  State EndSizeLine(size_t body_bytes);
  State EndTrailerLine();

  size_t max_body_bytes_;
  At at_ = At::kSizeLine;
  bool after_cr_ = false;
  std::string line_;
  size_t chunk_left_ = 0;
  size_t extension_bytes_ = 0;
  size_t trailer_bytes_ = 0;
  Rejection rejection_;
};

}  // namespace vivace::server
