// The framing policy and the chunk decoder on any bytes.
// Besides not crashing: the verdict does not depend on how the bytes are cut, and what is accepted
// keeps the promises of policy.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/chunked.h"
#include "server/http/policy.h"

namespace {

using vivace::server::BodyFraming;
using vivace::server::ChunkDecoder;
using vivace::server::HeadScanner;

constexpr size_t kMaxBody = 4'096;

void Require(bool condition) {
  if (!condition) std::abort();
}

HeadScanner::State ScanInPieces(HeadScanner& scanner, std::string_view input, size_t piece) {
  HeadScanner::State state = HeadScanner::State::kMore;
  for (size_t end = 0; end < input.size() && state == HeadScanner::State::kMore;) {
    end = std::min(input.size(), end + piece);
    state = scanner.Scan(input.substr(0, end));
  }
  return state;
}

void FuzzBody(std::string_view input, size_t piece) {
  std::string whole, pieces;
  ChunkDecoder first(kMaxBody), second(kMaxBody);
  std::string_view rest = input;
  const ChunkDecoder::State expected = first.Feed(rest, whole);
  ChunkDecoder::State state = ChunkDecoder::State::kMore;
  size_t used = 0;
  while (used < input.size() && state == ChunkDecoder::State::kMore) {
    std::string_view part = input.substr(used, piece);
    const size_t size = part.size();
    state = second.Feed(part, pieces);
    used += size - part.size();
  }
  Require(state == expected);
  Require(whole == pieces);
  Require(whole.size() <= kMaxBody);
  if (state == ChunkDecoder::State::kDone) Require(used == input.size() - rest.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0] % 17;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);

  static_cast<void>(vivace::server::ParseHead(input, kMaxBody));
  HeadScanner whole, pieces;
  const HeadScanner::State state = whole.Scan(input);
  Require(ScanInPieces(pieces, input, piece) == state);
  if (state != HeadScanner::State::kDone) {
    FuzzBody(input, piece);
    return 0;
  }
  Require(whole.consumed() == pieces.consumed());
  const auto head = vivace::server::ParseHead(whole.head(input), kMaxBody);
  if (!head) {
    Require(head.error().status >= 400 && head.error().status < 600);
    return 0;
  }
  const auto count = [&](std::string_view name) {
    return std::count_if(head->request.headers.begin(), head->request.headers.end(),
                         [name](const auto& field) { return field.first == name; });
  };
  Require(count("host") == 1 || (head->http_1_0 && count("host") == 0));
  Require(count("content-length") + count("transfer-encoding") <= 1);
  Require((count("transfer-encoding") == 1) == (head->framing == BodyFraming::kChunked));
  Require(head->content_length <= kMaxBody);
  Require(head->request.path.starts_with('/'));
  Require(head->request.path.find("//") == std::string::npos);
  if (head->framing == BodyFraming::kChunked) FuzzBody(input.substr(whole.consumed()), piece);
  return 0;
}
