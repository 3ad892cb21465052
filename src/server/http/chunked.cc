#include "server/http/chunked.h"

#include <algorithm>

#include "base/limits.h"

namespace vivace::server {
namespace {

constexpr size_t kMaxSizeDigits = 16;

constexpr Rejection kBadSize = {400, "bad_chunk_size",
                                "A chunk size is not a plain hexadecimal number."};
constexpr Rejection kBadLine = {400, "bad_chunk_line",
                                "Lines of a chunked body must end in CRLF and hold no control "
                                "characters."};
constexpr Rejection kLineTooLong = {400, "chunk_line_too_long",
                                    "The chunk extensions are too long."};
constexpr Rejection kBadEnd = {400, "bad_chunk_end", "A chunk is not as long as it says."};
constexpr Rejection kBadTrailer = {400, "bad_trailer",
                                   "A trailer field is malformed or not allowed there."};
constexpr Rejection kTrailersTooLarge = {431, "trailers_too_large", "The trailers are too large."};

}  // namespace

ChunkDecoder::State ChunkDecoder::Reject(const Rejection& rejection) {
  rejection_ = rejection;
  return State::kRejected;
}

ChunkDecoder::State ChunkDecoder::Feed(std::string_view& input, std::string& body) {
  while (!input.empty()) {
    if (at_ == At::kData) {
      const size_t n = std::min(chunk_left_, input.size());
      body.append(input.substr(0, n));
      input.remove_prefix(n);
      chunk_left_ -= n;
      if (chunk_left_ == 0) at_ = At::kDataEnd;
      continue;
    }
    const char c = input.front();
    input.remove_prefix(1);
    const State state = TakeLineByte(c, body.size());
    if (state != State::kMore) return state;
  }
  return State::kMore;
}

ChunkDecoder::State ChunkDecoder::TakeLineByte(char c, size_t body_bytes) {
  if (after_cr_) {
    if (c != '\n') return Reject(kBadLine);
    after_cr_ = false;
    return EndLine(body_bytes);
  }
  if (c == '\r') {
    after_cr_ = true;
    return State::kMore;
  }
  if (at_ == At::kDataEnd) return Reject(kBadEnd);
  const auto byte = static_cast<unsigned char>(c);
  if ((byte < 0x20 && byte != '\t') || byte == 0x7F) return Reject(kBadLine);
  if (at_ == At::kTrailerLine) {
    if (++trailer_bytes_ > limits::kMaxHeaderBytes) return Reject(kTrailersTooLarge);
  } else if (line_.size() == limits::kMaxChunkLineBytes) {
    return Reject(kLineTooLong);
  }
  line_ += c;
  return State::kMore;
}

ChunkDecoder::State ChunkDecoder::EndLine(size_t body_bytes) {
  switch (at_) {
    case At::kSizeLine:
      return EndSizeLine(body_bytes);
    case At::kTrailerLine:
      return EndTrailerLine();
    case At::kData:
    case At::kDataEnd:
      break;
  }
  at_ = At::kSizeLine;
  return State::kMore;
}

// HEX[;extensions]: a size padded with spaces is one that peers disagree about.
ChunkDecoder::State ChunkDecoder::EndSizeLine(size_t body_bytes) {
  const size_t digits = std::min(line_.find(';'), line_.size());
  if (digits == 0 || digits > kMaxSizeDigits) return Reject(kBadSize);
  size_t size = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int value = HexValue(line_[i]);
    if (value < 0) return Reject(kBadSize);
    size = size * 16 + static_cast<size_t>(value);
  }
  extension_bytes_ += line_.size() - digits;
  if (extension_bytes_ > limits::kMaxChunkExtensionBytes) return Reject(kLineTooLong);
  if (size > max_body_bytes_ - std::min(body_bytes, max_body_bytes_)) {
    return Reject(BodyTooLarge(max_body_bytes_));
  }
  line_.clear();
  chunk_left_ = size;
  at_ = size == 0 ? At::kTrailerLine : At::kData;
  return State::kMore;
}

ChunkDecoder::State ChunkDecoder::EndTrailerLine() {
  if (line_.empty()) return State::kDone;
  trailer_bytes_ += 2;
  const auto field = SplitField(line_);
  if (!field || IsSingletonField(ToLower(field->first))) return Reject(kBadTrailer);
  line_.clear();
  return State::kMore;
}

}  // namespace vivace::server
