#include "server/openai/responses_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "server/openai/reports.h"

namespace vivace::server {
namespace {

// The shapes of the kinds of item.
struct Kind {
  std::string_view id_prefix, type, part_type, delta_event, done_event;
};
constexpr Kind kMessage = {"msg_", "message", "output_text", "response.output_text.delta",
                           "response.output_text.done"};
constexpr Kind kThought = {"rs_", "reasoning", "reasoning_text", "response.reasoning_text.delta",
                           "response.reasoning_text.done"};
constexpr Kind kCall = {"fc_", "function_call", "", "response.function_call_arguments.delta",
                        "response.function_call_arguments.done"};

const Kind& KindOf(PieceKind kind) {
  if (kind == PieceKind::kContent) return kMessage;
  return kind == PieceKind::kReasoning ? kThought : kCall;
}

constexpr std::string_view kStatusNames[] = {"in_progress", "completed", "incomplete", "failed"};

std::string AfterPrefix(std::string_view id) { return std::string(id.substr(id.find('_') + 1)); }

void WriteUsage(const Usage& usage, JsonWriter* w) {
  w->BeginObject();
  w->KeyInt("input_tokens", usage.prompt_tokens);
  w->Key("input_tokens_details");
  w->BeginObject();
  w->KeyInt("cached_tokens", usage.cached_tokens);
  w->KeyInt("cache_write_tokens", 0);
  w->EndObject();
  w->KeyInt("output_tokens", usage.completion_tokens);
  w->Key("output_tokens_details");
  w->BeginObject();
  w->KeyInt("reasoning_tokens", usage.reasoning_tokens);
  w->EndObject();
  w->KeyInt("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  w->EndObject();
}

}  // namespace

ResponsesWriter::ResponsesWriter(const RequestParams& params, const Tokenizer& tokenizer,
                                 AnswerIdentity identity)
    : params_(params),
      style_{&tokenizer, params.sampling.logprobs, false},
      identity_(std::move(identity)),
      item_tail_(AfterPrefix(identity_.id)) {}

// ---- items --------------------------------------------------------------------------------------

bool ResponsesWriter::Continues(const OutputPiece& piece) const {
  if (!has_item_) return false;
  if (IsTool(piece.kind)) {
    return piece.kind == PieceKind::kToolArguments && IsTool(item_.kind) &&
           piece.call == item_.call;
  }
  return piece.kind == item_.kind;
}

void ResponsesWriter::StartItem(const OutputPiece& piece) {
  has_item_ = true;
  item_ = {};
  item_.kind = IsTool(piece.kind) ? PieceKind::kToolCall : piece.kind;
  item_.call = piece.call;
  item_.id = fmt::format("{}{}_{}", KindOf(item_.kind).id_prefix, item_tail_, items_);
  if (piece.kind == PieceKind::kToolCall) {
    item_.name = piece.text;
    item_.call_id = piece.id;
  }
  if (piece.kind == PieceKind::kContent) item_.stretch = stretches_++;
}

void ResponsesWriter::Take(const OutputPiece& piece) {
  if (piece.kind != PieceKind::kToolCall) item_.text += piece.text;
}

void ResponsesWriter::TakeLogprobs(const ChoicePart& part) {
  if (!params_.logprobs || !has_item_ || item_.kind != PieceKind::kContent) return;
  std::vector<LogprobEntry> own;
  std::copy_if(part.logprobs.begin(), part.logprobs.end(), std::back_inserter(own),
               [this](const LogprobEntry& entry) { return entry.stretch == item_.stretch; });
  if (own.empty()) return;
  std::string list;
  JsonWriter w(&list);
  WriteLogprobList(style_, own, &w);
  const std::string_view entries = std::string_view(list).substr(1, list.size() - 2);
  for (std::string* to : {&item_.logprobs, &item_.unsaid}) {
    if (!to->empty()) *to += ',';
    *to += entries;
  }
}

void ResponsesWriter::FinishItem(Status status) {
  if (!output_.empty()) output_ += ',';
  JsonWriter w(&output_);
  WriteItem(item_, status, &w);
  items_ += 1;
  has_item_ = false;
}

void ResponsesWriter::WritePart(const Item& item, JsonWriter* w) {
  w->BeginObject();
  w->KeyString("type", KindOf(item.kind).part_type);
  w->KeyString("text", item.text);
  if (item.kind == PieceKind::kContent) {
    w->Key("annotations");
    w->BeginArray();
    w->EndArray();
    w->Key("logprobs");
    w->BeginArray();
    if (!item.logprobs.empty()) w->Literal(item.logprobs);
    w->EndArray();
  }
  w->EndObject();
}

// An item that has just begun has no parts yet.
void ResponsesWriter::WriteItem(const Item& item, Status status, JsonWriter* w) const {
  w->BeginObject();
  w->KeyString("id", item.id);
  w->KeyString("type", KindOf(item.kind).type);
  w->KeyString("status", kStatusNames[static_cast<size_t>(status)]);
  if (item.kind == PieceKind::kToolCall) {
    w->KeyString("call_id", item.call_id);
    w->KeyString("name", item.name);
    w->KeyString("arguments", item.text);
    w->EndObject();
    return;
  }
  if (item.kind == PieceKind::kReasoning) {
    w->Key("summary");
    w->BeginArray();
    w->EndArray();
  } else {
    w->KeyString("role", "assistant");
  }
  w->Key("content");
  w->BeginArray();
  if (status != Status::kInProgress) WritePart(item, w);
  w->EndArray();
  w->EndObject();
}

// ---- events -------------------------------------------------------------------------------------

void ResponsesWriter::Event(std::string_view type, const Members& members, std::string* out) {
  *out += "event: ";
  *out += type;
  *out += "\ndata: ";
  JsonWriter w(out);
  w.BeginObject();
  w.KeyString("type", type);
  w.KeyInt("sequence_number", sequence_++);
  members(w);
  w.EndObject();
  *out += "\n\n";
}

void ResponsesWriter::ItemEvent(std::string_view type, const Members& members, std::string* out) {
  Event(
      type,
      [&](JsonWriter& w) {
        w.KeyString("item_id", item_.id);
        w.KeyInt("output_index", items_);
        if (item_.kind != PieceKind::kToolCall) w.KeyInt("content_index", 0);
        members(w);
      },
      out);
}

void ResponsesWriter::AddEvents(std::string* out) {
  Event(
      "response.output_item.added",
      [&](JsonWriter& w) {
        w.KeyInt("output_index", items_);
        w.Key("item");
        WriteItem(item_, Status::kInProgress, &w);
      },
      out);
  if (item_.kind == PieceKind::kToolCall) return;
  ItemEvent(
      "response.content_part.added",
      [&](JsonWriter& w) {
        w.Key("part");
        WritePart(item_, &w);
      },
      out);
}

void ResponsesWriter::DeltaEvent(std::string_view delta, std::string* out) {
  const std::string logprobs = std::exchange(item_.unsaid, {});
  ItemEvent(
      KindOf(item_.kind).delta_event,
      [&](JsonWriter& w) {
        w.KeyString("delta", delta);
        if (item_.kind != PieceKind::kContent) return;
        w.Key("logprobs");
        w.BeginArray();
        if (!logprobs.empty()) w.Literal(logprobs);
        w.EndArray();
      },
      out);
}

void ResponsesWriter::DoneEvents(Status status, std::string* out) {
  const bool call = item_.kind == PieceKind::kToolCall;
  ItemEvent(
      KindOf(item_.kind).done_event,
      [&](JsonWriter& w) {
        if (call) w.KeyString("name", item_.name);
        w.KeyString(call ? "arguments" : "text", item_.text);
        if (item_.kind != PieceKind::kContent) return;
        w.Key("logprobs");
        w.BeginArray();
        if (!item_.logprobs.empty()) w.Literal(item_.logprobs);
        w.EndArray();
      },
      out);
  if (!call) {
    ItemEvent(
        "response.content_part.done",
        [&](JsonWriter& w) {
          w.Key("part");
          WritePart(item_, &w);
        },
        out);
  }
  Event(
      "response.output_item.done",
      [&](JsonWriter& w) {
        w.KeyInt("output_index", items_);
        w.Key("item");
        WriteItem(item_, status, &w);
      },
      out);
}

// ---- the answer ---------------------------------------------------------------------------------

void ResponsesWriter::WriteResponse(Status status, const Usage* usage, const Error* error,
                                    JsonWriter* w) const {
  w->BeginObject();
  w->KeyString("id", identity_.id);
  w->KeyString("object", "response");
  w->KeyInt("created_at", identity_.created_s);
  w->KeyString("status", kStatusNames[static_cast<size_t>(status)]);
  w->KeyString("model", identity_.model);
  w->Key("error");
  if (error == nullptr) {
    w->Null();
  } else {
    w->BeginObject();
    w->KeyString("code", "server_error");
    w->KeyString("message", error->message);
    w->EndObject();
  }
  w->Key("incomplete_details");
  if (status == Status::kIncomplete) {
    w->Literal(R"({"reason":"max_output_tokens"})");
  } else {
    w->Null();
  }
  w->Key("output");
  w->BeginArray();
  if (!output_.empty()) w->Literal(output_);
  w->EndArray();
  w->Key("usage");
  if (usage == nullptr) {
    w->Null();
  } else {
    WriteUsage(*usage, w);
  }
  if (!params_.echoed.empty()) w->Literal(params_.echoed);
  if (status != Status::kInProgress) WriteReports(params_, w);
  w->EndObject();
}

void ResponsesWriter::Begin(const Usage&, std::string* out) {
  for (const std::string_view type : {"response.created", "response.in_progress"}) {
    Event(
        type,
        [&](JsonWriter& w) {
          w.Key("response");
          WriteResponse(Status::kInProgress, nullptr, nullptr, &w);
        },
        out);
  }
}

void ResponsesWriter::Delta(const ChoicePart& part, const Usage&, std::string* out) {
  TakeLogprobs(part);
  for (const OutputPiece& piece : part.pieces) {
    if (!Continues(piece)) {
      if (has_item_) EndItem(Status::kCompleted, out);
      StartItem(piece);
      AddEvents(out);
      TakeLogprobs(part);
    }
    Take(piece);
    if (piece.kind != PieceKind::kToolCall) DeltaEvent(piece.text, out);
  }
}

// Log-probabilities whose tokens say nothing come at the last.
void ResponsesWriter::EndItem(Status status, std::string* out) {
  if (!item_.unsaid.empty()) DeltaEvent("", out);
  DoneEvents(status, out);
  FinishItem(status);
}

void ResponsesWriter::Close(const ChoicePart& part, const Usage&, std::string* out) {
  by_length_ = part.end->by_length;
  if (!has_item_) return;
  EndItem(by_length_ ? Status::kIncomplete : Status::kCompleted, out);
}

void ResponsesWriter::End(const Usage& usage, std::string* out) {
  Event(
      by_length_ ? "response.incomplete" : "response.completed",
      [&](JsonWriter& w) {
        w.Key("response");
        WriteResponse(by_length_ ? Status::kIncomplete : Status::kCompleted, &usage, nullptr, &w);
      },
      out);
}

void ResponsesWriter::Failure(const Error& error, std::string* out) {
  Event(
      "response.failed",
      [&](JsonWriter& w) {
        w.Key("response");
        WriteResponse(Status::kFailed, nullptr, &error, &w);
      },
      out);
}

void ResponsesWriter::TakeWhole(const ChoicePart& part) {
  for (const OutputPiece& piece : part.pieces) {
    if (!Continues(piece)) {
      if (has_item_) FinishItem(Status::kCompleted);
      StartItem(piece);
      TakeLogprobs(part);
    }
    Take(piece);
  }
  if (has_item_) FinishItem(by_length_ ? Status::kIncomplete : Status::kCompleted);
}

std::string ResponsesWriter::Whole(std::span<const ChoicePart> parts, const Usage& usage) {
  for (const ChoicePart& part : parts) {
    by_length_ = part.end->by_length;
    TakeWhole(part);
  }
  std::string out;
  JsonWriter w(&out);
  WriteResponse(by_length_ ? Status::kIncomplete : Status::kCompleted, &usage, nullptr, &w);
  return out;
}

}  // namespace vivace::server
