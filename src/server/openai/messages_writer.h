// Answers of Anthropic's /v1/messages: blocks of text, thinking and tool use, whole or as events.
//
// Source: Anthropic's API reference, "Messages" and "Streaming messages". Thoughts carry no
// signature: nobody here asks for one back.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/openai/answer_writer.h"

namespace vivace::server {

class MessagesWriter final : public AnswerWriter {
 public:
  // `params` must outlive the writer.
  MessagesWriter(const RequestParams& params, AnswerIdentity identity);

  void Begin(const Usage& usage, std::string* out) override;
  void Open(const ChoicePart&, const Usage&, std::string*) override {}
  void Delta(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void Close(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void End(const Usage& usage, std::string* out) override;
  void Ping(std::string* out) override;
  void Failure(const Error& error, std::string* out) override;
  std::string Whole(std::span<const ChoicePart> parts, const Usage& usage) override;
  ErrorShape error_shape() const override { return ErrorShape::kAnthropic; }

 private:
  using Members = std::function<void(JsonWriter& w)>;

  static void Event(std::string_view type, const Members& members, std::string* out);
  void StartBlock(const OutputPiece& piece, std::string* out);
  void StopBlock(std::string* out);
  // What the message says of itself, without braces, up to its content.
  void WriteHead(JsonWriter* w) const;
  void WriteStop(const ChoiceEnd& end, bool called, JsonWriter* w) const;

  const RequestParams& params_;
  const AnswerIdentity identity_;
  // The block under way in a stream.
  bool in_block_ = false;
  PieceKind kind_ = PieceKind::kContent;
  int32_t call_ = -1;
  int64_t blocks_ = 0;  // begun ones
  bool called_ = false;
  ChoiceEnd end_;
};

}  // namespace vivace::server
