// What a measured server may send to the load generator: status line, headers, a stream of events.
// Besides not crashing: what is in the record does not depend on how the bytes are cut, its parts
// agree with each other and with the bounds, and an event that is JSON is taken for it.
// The first byte says how the bytes are cut, the second which status and options there are; headers
// follow up to an empty line, then the body.
#include <algorithm>
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/utf8.h"
#include "load/client/answer_reader.h"
#include "load/client/chunk.h"

namespace {

using vivace::load::AnswerReader;
using vivace::load::Outcome;
using vivace::load::RequestRecord;

constexpr int64_t kNow = 7;
constexpr int64_t kMostEvents = 6;
constexpr int32_t kStatuses[] = {200, 200, 200, 200, 500, 429, 302, 100};

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Seen {
  RequestRecord record;
  std::string text;
  int64_t live_tokens = 0;
  bool operator==(const Seen& other) const {
    const RequestRecord &a = record, &b = other.record;
    return a.outcome == b.outcome && a.reason == b.reason && a.status == b.status &&
           a.first_ns == b.first_ns && a.chunk_ns == b.chunk_ns &&
           a.chunk_tokens == b.chunk_tokens && a.prompt_tokens == b.prompt_tokens &&
           a.cached_tokens == b.cached_tokens && a.output_tokens == b.output_tokens &&
           a.counted == b.counted && a.finish_reason == b.finish_reason && text == other.text &&
           live_tokens == other.live_tokens;
  }
};

Seen Read(uint8_t options, std::string_view head, std::string_view body, size_t cut) {
  Seen seen;
  AnswerReader reader;
  reader.Begin(&seen.record, {.keep_text = (options & 8) != 0,
                              .max_events = kMostEvents,
                              .live_tokens = &seen.live_tokens});
  seen.record.status = kStatuses[options & 7];
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size() - 1) + 1;
    reader.OnHeader(head.substr(0, end));
    head.remove_prefix(end);
  }
  bool wanted = true;
  while (wanted && !body.empty()) {
    wanted = reader.OnBody(body.substr(0, cut), kNow);
    body.remove_prefix(std::min(cut, body.size()));
  }
  const bool clean = (options & 16) == 0 && wanted;
  reader.End({.clean = clean, .transport = clean ? "" : "it broke"}, kNow + 1);
  seen.text = std::move(reader.text());
  return seen;
}

void CheckRecord(const RequestRecord& record) {
  Require(record.outcome != Outcome::kNotRun && record.outcome != Outcome::kTimeout);
  Require((record.outcome == Outcome::kCompleted) == record.reason.empty());
  Require(vivace::utf8::IsValid(record.reason) && vivace::utf8::IsValid(record.finish_reason));
  Require(record.output_tokens >= 0 && record.prompt_tokens >= 0 && record.cached_tokens >= -1);
  Require(record.chunk_ns.size() <= size_t{kMostEvents} + 1);
  Require(record.chunk_tokens.empty() || record.chunk_tokens.size() == record.chunk_ns.size());
  Require((record.first_ns != 0) == !record.chunk_ns.empty());
  Require(record.outcome != Outcome::kCompleted || record.counted || record.first_ns != 0);
}

// Of one event: JSON's own reader is the judge. Choices that are no objects are no chunk.
void CheckEvent(std::string_view event) {
  boost::system::error_code error;
  const auto value = boost::json::parse({event.data(), event.size()}, error);
  vivace::load::Chunk chunk;
  std::string text;
  const bool accepted = vivace::load::ParseChunk(event, &chunk, &text);
  if (!error && value.is_object() && !value.get_object().contains("choices")) Require(accepted);
  if (!error && !value.is_object()) Require(!accepted);
  Require(vivace::load::ErrorMessageOf(event).size() <= 3 * vivace::limits::kMaxLoadReasonBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t blank = input.find("\n\n");
  const size_t split = blank == input.npos ? 0 : blank + 2;
  const std::string_view head = input.substr(0, split), body = input.substr(split);
  const Seen whole = Read(data[1], head, body, size);
  CheckRecord(whole.record);
  Require(Read(data[1], head, body, 1 + data[0] % 32) == whole);
  CheckEvent(body);
  return 0;
}
