// The JSON of chat and completion answers, whole and streamed, byte for byte as OpenAI's clients
// expect it. Knows shapes, not requests: it is given what to say and appends it to a buffer.
//
// A stream's chunks share their beginning, which is written once. One writer per answer; the loop
// thread uses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "engine/request.h"
#include "server/openai/logprobs.h"
#include "server/params/request_params.h"

namespace vivace::server {

struct Usage {
  int64_t prompt_tokens = 0;  // each prompt once, whatever n
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
};

// What ended a choice by itself: nothing of the request's own, a stop string, a stop id.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

// How a choice ended.
struct ChoiceEnd {
  bool by_length = false;  // "length", else "stop"
  StopReason stop_reason;
};

// What a choice says: all of it, or what is new.
struct ChoicePart {
  int32_t index = 0;
  std::string_view text;
  std::span<const LogprobEntry> logprobs;
  std::span<const TokenId> token_ids;
  std::span<const TokenId> prompt_token_ids;  // of its prompt; whole answers and first chunks
  const ChoiceEnd* end = nullptr;
};

class ResponseWriter {
 public:
  struct Identity {
    std::string id;
    int64_t created_s = 0;
    std::string model;
  };
  // `params` must outlive the writer.
  ResponseWriter(const RequestParams& params, const Tokenizer& tokenizer, Identity identity);

  // Server-sent events, each with its blank line. `usage` is written where the request wants it in
  // every chunk.
  void FirstChunk(const ChoicePart& part, const Usage& usage, std::string* out) const;
  void TextChunk(const ChoicePart& part, const Usage& usage, std::string* out) const;
  void EndChunk(const ChoicePart& part, const Usage& usage, std::string* out) const;
  void UsageChunk(const Usage& usage, std::string* out) const;
  static void ErrorEvent(std::string_view error_body, std::string* out);
  static void Done(std::string* out);

  // The whole answer. The parts are in the order of their indexes.
  std::string Whole(std::span<const ChoicePart> parts, const Usage& usage) const;

 private:
  enum class Moment : uint8_t { kFirst, kText, kEnd };
  void Chunk(Moment moment, const ChoicePart& part, const Usage& usage, std::string* out) const;
  void WriteDelta(Moment moment, const ChoicePart& part, JsonWriter* w) const;
  void WriteWholeChoice(const ChoicePart& part, JsonWriter* w) const;
  void WriteLogprobs(const ChoicePart& part, JsonWriter* w) const;
  static void WriteEnd(const ChoiceEnd* end, JsonWriter* w);
  static void WriteIds(std::string_view key, std::span<const TokenId> ids, JsonWriter* w);
  static void WriteUsage(const Usage& usage, JsonWriter* w);
  void WriteIgnored(JsonWriter* w) const;
  std::string Head(std::string_view object) const;

  const RequestParams& params_;
  LogprobStyle style_;
  Identity identity_;
  bool chat_;
  std::string chunk_head_;  // "data: {...," up to the choices
};

}  // namespace vivace::server
