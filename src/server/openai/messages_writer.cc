#include "server/openai/messages_writer.h"

#include <algorithm>
#include <utility>

#include "server/json/strict_json.h"
#include "server/openai/reports.h"

namespace vivace::server {
namespace {

PieceKind BlockKind(PieceKind kind) { return IsTool(kind) ? PieceKind::kToolCall : kind; }

// Anthropic counts cached tokens beside the input, not in it.
void WriteUsage(const Usage& usage, JsonWriter* w) {
  w->Key("usage");
  w->BeginObject();
  w->KeyInt("input_tokens", std::max<int64_t>(usage.prompt_tokens - usage.cached_tokens, 0));
  w->KeyInt("cache_creation_input_tokens", 0);
  w->KeyInt("cache_read_input_tokens", usage.cached_tokens);
  w->KeyInt("output_tokens", usage.completion_tokens);
  w->EndObject();
}

// A block as its start event has it, or complete.
void WriteBlock(PieceKind kind, std::string_view text, std::string_view name, std::string_view id,
                JsonWriter* w) {
  w->BeginObject();
  if (kind == PieceKind::kContent) {
    w->KeyString("type", "text");
    w->KeyString("text", text);
  } else if (kind == PieceKind::kReasoning) {
    w->KeyString("type", "thinking");
    w->KeyString("thinking", text);
    w->KeyString("signature", "");
  } else {
    w->KeyString("type", "tool_use");
    w->KeyString("id", id);
    w->KeyString("name", name);
    w->Key("input");
    // What was cut in the middle is no object; the stop reason says so.
    const auto input = text.empty() ? Result<json::value>(json::object()) : ParseStrictJson(text);
    w->Literal(input && input->is_object() && !text.empty() ? text : "{}");
  }
  w->EndObject();
}

void WriteBlocks(std::span<const OutputPiece> pieces, JsonWriter* w) {
  for (size_t i = 0; i < pieces.size();) {
    const OutputPiece& first = pieces[i];
    const PieceKind kind = BlockKind(first.kind);
    const bool call = first.kind == PieceKind::kToolCall;
    std::string text = call ? std::string() : first.text;
    for (++i; i < pieces.size() && pieces[i].kind != PieceKind::kToolCall &&
              BlockKind(pieces[i].kind) == kind && pieces[i].call == first.call;
         ++i) {
      text += pieces[i].text;
    }
    WriteBlock(kind, text, call ? first.text : "", first.id, w);
  }
}

}  // namespace

MessagesWriter::MessagesWriter(const RequestParams& params, AnswerIdentity identity)
    : params_(params), identity_(std::move(identity)) {}

void MessagesWriter::Event(std::string_view type, const Members& members, std::string* out) {
  *out += "event: ";
  *out += type;
  *out += "\ndata: ";
  JsonWriter w(out);
  w.BeginObject();
  w.KeyString("type", type);
  members(w);
  w.EndObject();
  *out += "\n\n";
}

void MessagesWriter::WriteHead(JsonWriter* w) const {
  w->KeyString("id", identity_.id);
  w->KeyString("type", "message");
  w->KeyString("role", "assistant");
  w->KeyString("model", identity_.model);
}

void MessagesWriter::WriteStop(const ChoiceEnd& end, bool called, JsonWriter* w) const {
  const auto* text = end.by_length ? nullptr : std::get_if<std::string>(&end.stop_reason);
  w->KeyString("stop_reason", end.by_length     ? "max_tokens"
                              : text != nullptr ? "stop_sequence"
                              : called          ? "tool_use"
                                                : "end_turn");
  w->Key("stop_sequence");
  if (text != nullptr) {
    w->String(*text);
  } else {
    w->Null();
  }
}

void MessagesWriter::Begin(const Usage& usage, std::string* out) {
  Event(
      "message_start",
      [&](JsonWriter& w) {
        w.Key("message");
        w.BeginObject();
        WriteHead(&w);
        w.Key("content");
        w.BeginArray();
        w.EndArray();
        w.KeyNull("stop_reason");
        w.KeyNull("stop_sequence");
        WriteUsage(usage, &w);
        w.EndObject();
      },
      out);
  Ping(out);
}

void MessagesWriter::Ping(std::string* out) {
  Event(
      "ping", [](JsonWriter&) {}, out);
}

void MessagesWriter::StartBlock(const OutputPiece& piece, std::string* out) {
  kind_ = BlockKind(piece.kind);
  call_ = piece.call;
  in_block_ = true;
  called_ = called_ || kind_ == PieceKind::kToolCall;
  const bool call = piece.kind == PieceKind::kToolCall;
  Event(
      "content_block_start",
      [&](JsonWriter& w) {
        w.KeyInt("index", blocks_);
        w.Key("content_block");
        WriteBlock(kind_, "", call ? piece.text : "", piece.id, &w);
      },
      out);
  blocks_ += 1;
}

void MessagesWriter::StopBlock(std::string* out) {
  if (!in_block_) return;
  in_block_ = false;
  Event(
      "content_block_stop", [&](JsonWriter& w) { w.KeyInt("index", blocks_ - 1); }, out);
}

void MessagesWriter::Delta(const ChoicePart& part, const Usage&, std::string* out) {
  for (const OutputPiece& piece : part.pieces) {
    const bool call = piece.kind == PieceKind::kToolCall;
    if (!in_block_ || call || BlockKind(piece.kind) != kind_ || piece.call != call_) {
      StopBlock(out);
      StartBlock(piece, out);
    }
    if (call) continue;
    Event(
        "content_block_delta",
        [&](JsonWriter& w) {
          w.KeyInt("index", blocks_ - 1);
          w.Key("delta");
          w.BeginObject();
          if (kind_ == PieceKind::kContent) {
            w.KeyString("type", "text_delta");
            w.KeyString("text", piece.text);
          } else if (kind_ == PieceKind::kReasoning) {
            w.KeyString("type", "thinking_delta");
            w.KeyString("thinking", piece.text);
          } else {
            w.KeyString("type", "input_json_delta");
            w.KeyString("partial_json", piece.text);
          }
          w.EndObject();
        },
        out);
  }
}

void MessagesWriter::Close(const ChoicePart& part, const Usage&, std::string* out) {
  StopBlock(out);
  end_ = *part.end;
}

void MessagesWriter::End(const Usage& usage, std::string* out) {
  Event(
      "message_delta",
      [&](JsonWriter& w) {
        w.Key("delta");
        w.BeginObject();
        WriteStop(end_, called_, &w);
        w.EndObject();
        WriteUsage(usage, &w);
        WriteReports(params_, &w);
      },
      out);
  Event(
      "message_stop", [](JsonWriter&) {}, out);
}

void MessagesWriter::Failure(const Error& error, std::string* out) {
  *out += "event: error\ndata: ";
  *out += ErrorBody(error, ErrorShape::kAnthropic);
  *out += "\n\n";
}

std::string MessagesWriter::Whole(std::span<const ChoicePart> parts, const Usage& usage) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  WriteHead(&w);
  w.Key("content");
  w.BeginArray();
  bool called = false;
  for (const ChoicePart& part : parts) {
    WriteBlocks(part.pieces, &w);
    called = called || std::any_of(part.pieces.begin(), part.pieces.end(), [](const auto& piece) {
               return piece.kind == PieceKind::kToolCall;
             });
  }
  w.EndArray();
  WriteStop(parts.empty() || parts.front().end == nullptr ? ChoiceEnd() : *parts.front().end,
            called, &w);
  WriteUsage(usage, &w);
  WriteReports(params_, &w);
  w.EndObject();
  return out;
}

}  // namespace vivace::server
