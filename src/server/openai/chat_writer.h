// Answers of /v1/chat/completions: content, reasoning (under both of its names) and tool calls.
//
// Streamed calls are OpenAI's: a delta with index, id, type and name, then deltas of arguments.
// Each delta says one thing; what a step made of several is several.
#pragma once

#include <string>
#include <vector>

#include "server/openai/openai_writer.h"

namespace vivace::server {

class ChatWriter final : public OpenAiWriter {
 public:
  ChatWriter(const RequestParams& params, const Tokenizer& tokenizer, AnswerIdentity identity);

  void Open(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void Delta(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void Close(const ChoicePart& part, const Usage& usage, std::string* out) override;
  std::string Whole(std::span<const ChoicePart> parts, const Usage& usage) override;

 private:
  enum class Moment : uint8_t { kOpen, kDelta, kClose };
  // `piece` null: empty content, a chunk for its log-probabilities or ids.
  void Chunk(Moment moment, const ChoicePart& part, const OutputPiece* piece, const Usage& usage,
             std::string* out) const;
  void WriteWholeChoice(const ChoicePart& part, JsonWriter* w) const;
  // OpenAI's reason for a choice that ended by itself.
  std::string_view EndReason(bool made_calls) const;

  std::vector<bool> made_calls_;  // by choice, in a stream
};

}  // namespace vivace::server
