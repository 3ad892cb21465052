#include "server/openai/chat_writer.h"

#include <algorithm>
#include <utility>

namespace vivace::server {
namespace {

bool IsCall(const OutputPiece& piece) { return piece.kind == PieceKind::kToolCall; }

void WriteReasoning(std::string_view text, JsonWriter* w) {
  w->KeyString("reasoning_content", text);
  w->KeyString("reasoning", text);
}

// The beginning of a call, or more of its arguments, as an entry of delta.tool_calls.
void WriteCallDelta(const OutputPiece& piece, JsonWriter* w) {
  const bool begins = IsCall(piece);
  w->Key("tool_calls");
  w->BeginArray();
  w->BeginObject();
  w->KeyInt("index", piece.call);
  if (begins) {
    w->KeyString("id", piece.id);
    w->KeyString("type", "function");
  }
  w->Key("function");
  w->BeginObject();
  if (begins) w->KeyString("name", piece.text);
  w->KeyString("arguments", begins ? std::string_view() : std::string_view(piece.text));
  w->EndObject();
  w->EndObject();
  w->EndArray();
}

std::string Joined(std::span<const OutputPiece> pieces, PieceKind kind, int32_t call = -1) {
  std::string text;
  for (const OutputPiece& piece : pieces) {
    if (piece.kind == kind && (call < 0 || piece.call == call)) text += piece.text;
  }
  return text;
}

void WriteWholeCalls(std::span<const OutputPiece> pieces, JsonWriter* w) {
  w->Key("tool_calls");
  w->BeginArray();
  for (const OutputPiece& piece : pieces) {
    if (!IsCall(piece)) continue;
    w->BeginObject();
    w->KeyString("id", piece.id);
    w->KeyString("type", "function");
    w->Key("function");
    w->BeginObject();
    w->KeyString("name", piece.text);
    w->KeyString("arguments", Joined(pieces, PieceKind::kToolArguments, piece.call));
    w->EndObject();
    w->EndObject();
  }
  w->EndArray();
}

}  // namespace

ChatWriter::ChatWriter(const RequestParams& params, const Tokenizer& tokenizer,
                       AnswerIdentity identity)
    : OpenAiWriter(params, tokenizer, std::move(identity), "chat.completion",
                   "chat.completion.chunk") {}

// A call that the client named is what it asked for, and "stop" in OpenAI's API.
std::string_view ChatWriter::EndReason(bool made_calls) const {
  return made_calls && params_.tool_choice != ToolChoice::kNamed ? "tool_calls" : "stop";
}

void ChatWriter::Open(const ChoicePart& part, const Usage& usage, std::string* out) {
  Chunk(Moment::kOpen, part, nullptr, usage, out);
}

void ChatWriter::Delta(const ChoicePart& part, const Usage& usage, std::string* out) {
  if (part.pieces.empty()) return Chunk(Moment::kDelta, part, nullptr, usage, out);
  ChoicePart rest = part;
  for (const OutputPiece& piece : part.pieces) {
    if (IsCall(piece)) {
      const auto index = static_cast<size_t>(part.index);
      if (made_calls_.size() <= index) made_calls_.resize(index + 1);
      made_calls_[index] = true;
    }
    Chunk(Moment::kDelta, rest, &piece, usage, out);
    rest.logprobs = {};
    rest.token_ids = {};
  }
}

void ChatWriter::Close(const ChoicePart& part, const Usage& usage, std::string* out) {
  Chunk(Moment::kClose, part, nullptr, usage, out);
}

void ChatWriter::Chunk(Moment moment, const ChoicePart& part, const OutputPiece* piece,
                       const Usage& usage, std::string* out) const {
  BeginChunk(out);
  JsonWriter w(out);
  w.Key("choices");
  w.BeginArray();
  w.BeginObject();
  w.KeyInt("index", part.index);
  w.Key("delta");
  w.BeginObject();
  if (moment == Moment::kOpen) w.KeyString("role", "assistant");
  if (piece == nullptr) {
    if (moment != Moment::kClose) w.KeyString("content", "");
  } else if (piece->kind == PieceKind::kContent) {
    w.KeyString("content", piece->text);
  } else if (piece->kind == PieceKind::kReasoning) {
    WriteReasoning(piece->text, &w);
  } else {
    WriteCallDelta(*piece, &w);
  }
  w.EndObject();
  w.Key("logprobs");
  if (params_.logprobs && !part.logprobs.empty()) {
    WriteChatLogprobs(style_, part.logprobs, &w);
  } else {
    w.Null();
  }
  const auto index = static_cast<size_t>(part.index);
  WriteEnd(part.end, EndReason(index < made_calls_.size() && made_calls_[index]), &w);
  if (params_.return_token_ids) w.KeyInts("token_ids", part.token_ids);
  w.EndObject();
  w.EndArray();
  if (params_.return_token_ids && moment == Moment::kOpen) {
    w.KeyInts("prompt_token_ids", part.prompt_token_ids);
  }
  EndChunk(part.end, usage, &w, out);
}

void ChatWriter::WriteWholeChoice(const ChoicePart& part, JsonWriter* w) const {
  const bool made_calls = std::any_of(part.pieces.begin(), part.pieces.end(), IsCall);
  const std::string content = Joined(part.pieces, PieceKind::kContent);
  const std::string reasoning = Joined(part.pieces, PieceKind::kReasoning);
  w->BeginObject();
  w->KeyInt("index", part.index);
  w->Key("message");
  w->BeginObject();
  w->KeyString("role", "assistant");
  w->Key("content");
  if (content.empty() && made_calls) {
    w->Null();
  } else {
    w->String(content);
  }
  w->KeyNull("refusal");
  if (!reasoning.empty()) WriteReasoning(reasoning, w);
  if (made_calls) WriteWholeCalls(part.pieces, w);
  w->EndObject();
  w->Key("logprobs");
  if (params_.logprobs) {
    WriteChatLogprobs(style_, part.logprobs, w);
  } else {
    w->Null();
  }
  WriteEnd(part.end, EndReason(made_calls), w);
  if (params_.return_token_ids) w->KeyInts("token_ids", part.token_ids);
  w->EndObject();
}

std::string ChatWriter::Whole(std::span<const ChoicePart> parts, const Usage& usage) {
  std::string out = BeginWhole();
  JsonWriter w(&out);
  w.Key("choices");
  w.BeginArray();
  for (const ChoicePart& part : parts) WriteWholeChoice(part, &w);
  w.EndArray();
  w.Key("usage");
  WriteUsage(usage, &w);
  if (params_.return_token_ids) {
    w.KeyInts("prompt_token_ids",
              parts.empty() ? std::span<const TokenId>() : parts.front().prompt_token_ids);
  }
  if (!parts.empty()) WritePromptLogprobs(parts.front(), &w);
  EndWhole(&w);
  return out;
}

}  // namespace vivace::server
