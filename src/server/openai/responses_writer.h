// Answers of /v1/responses: items (reasoning, a message, function calls), whole or as typed events
// that carry a sequence number, an item's index and its id.
//
// A stream says everything three times (deltas, the item's end, the response's end), as OpenAI's
// does, so the writer keeps what was said. Source: OpenAI's API reference, "Responses" and
// "Streaming events".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/openai/answer_writer.h"

namespace vivace::server {

class ResponsesWriter final : public AnswerWriter {
 public:
  // `params` and `tokenizer` must outlive the writer.
  ResponsesWriter(const RequestParams& params, const Tokenizer& tokenizer, AnswerIdentity identity);

  void Begin(const Usage& usage, std::string* out) override;
  void Open(const ChoicePart&, const Usage&, std::string*) override {}
  void Delta(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void Close(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void End(const Usage& usage, std::string* out) override;
  void Failure(const Error& error, std::string* out) override;
  std::string Whole(std::span<const ChoicePart> parts, const Usage& usage) override;

 private:
  enum class Status : uint8_t { kInProgress, kCompleted, kIncomplete, kFailed };
  // An output item under way.
  struct Item {
    PieceKind kind = PieceKind::kContent;  // a call is kToolCall
    int32_t call = -1;
    std::string id;
    std::string text;      // or the call's arguments
    std::string name;      // of a call
    std::string call_id;   // of a call
    std::string logprobs;  // entries as JSON, of a message
    std::string unsaid;    // those that no delta has carried yet
    int32_t stretch = -1;  // of a message: which of the output's
  };
  using Members = std::function<void(JsonWriter& w)>;

  // What `piece` belongs to; takes over its text.
  bool Continues(const OutputPiece& piece) const;
  void Take(const OutputPiece& piece);
  void StartItem(const OutputPiece& piece);
  // Of the message under way.
  void TakeLogprobs(const ChoicePart& part);
  void TakeWhole(const ChoicePart& part);
  // Adds the item to those that are complete.
  void FinishItem(Status status);

  void WriteItem(const Item& item, Status status, JsonWriter* w) const;
  static void WritePart(const Item& item, JsonWriter* w);
  void WriteResponse(Status status, const Usage* usage, const Error* error, JsonWriter* w) const;

  void Event(std::string_view type, const Members& members, std::string* out);
  // The same, about the item under way.
  void ItemEvent(std::string_view type, const Members& members, std::string* out);
  void AddEvents(std::string* out);
  void DeltaEvent(std::string_view delta, std::string* out);
  void EndItem(Status status, std::string* out);
  void DoneEvents(Status status, std::string* out);

  const RequestParams& params_;
  const LogprobStyle style_;
  const AnswerIdentity identity_;
  const std::string item_tail_;  // of the ids of items
  bool has_item_ = false;
  Item item_;
  std::string output_;     // complete items, as JSON
  int64_t items_ = 0;      // complete ones
  int32_t stretches_ = 0;  // messages that have begun
  int64_t sequence_ = 0;
  bool by_length_ = false;
};

}  // namespace vivace::server
