#include "server/openai/response_writer.h"

#include <utility>

namespace vivace::server {

ResponseWriter::ResponseWriter(const RequestParams& params, const Tokenizer& tokenizer,
                               Identity identity)
    : params_(params),
      style_{&tokenizer, params.sampling.logprobs, params.return_tokens_as_token_ids},
      identity_(std::move(identity)),
      chat_(params.endpoint == kChat) {
  chunk_head_ = "data: {";
  chunk_head_ += Head(chat_ ? "chat.completion.chunk" : "text_completion");
}

// The members every object of the answer begins with.
std::string ResponseWriter::Head(std::string_view object) const {
  std::string head;
  JsonWriter w(&head);
  w.KeyString("id", identity_.id);
  w.KeyString("object", object);
  w.KeyInt("created", identity_.created_s);
  w.KeyString("model", identity_.model);
  return head;
}

void ResponseWriter::FirstChunk(const ChoicePart& part, const Usage& usage,
                                std::string* out) const {
  Chunk(Moment::kFirst, part, usage, out);
}

void ResponseWriter::TextChunk(const ChoicePart& part, const Usage& usage, std::string* out) const {
  Chunk(Moment::kText, part, usage, out);
}

void ResponseWriter::EndChunk(const ChoicePart& part, const Usage& usage, std::string* out) const {
  Chunk(Moment::kEnd, part, usage, out);
}

void ResponseWriter::Chunk(Moment moment, const ChoicePart& part, const Usage& usage,
                           std::string* out) const {
  *out += chunk_head_;
  JsonWriter w(out);
  out->push_back(',');
  w.Key("choices");
  w.BeginArray();
  w.BeginObject();
  w.KeyInt("index", part.index);
  WriteDelta(moment, part, &w);
  WriteLogprobs(part, &w);
  WriteEnd(part.end, &w);
  if (params_.return_token_ids) {
    if (moment == Moment::kFirst && !chat_) {
      WriteIds("prompt_token_ids", part.prompt_token_ids, &w);
    }
    WriteIds("token_ids", part.token_ids, &w);
  }
  w.EndObject();
  w.EndArray();
  if (params_.return_token_ids && chat_ && moment == Moment::kFirst) {
    WriteIds("prompt_token_ids", part.prompt_token_ids, &w);
  }
  if (params_.continuous_usage_stats) {
    w.Key("usage");
    WriteUsage(usage, &w);
  } else if (params_.include_usage) {
    w.KeyNull("usage");
  }
  w.EndObject();
  *out += "\n\n";
}

void ResponseWriter::WriteDelta(Moment moment, const ChoicePart& part, JsonWriter* w) const {
  if (!chat_) {
    w->KeyString("text", part.text);
    return;
  }
  w->Key("delta");
  w->BeginObject();
  if (moment == Moment::kFirst) w->KeyString("role", "assistant");
  if (moment != Moment::kEnd) w->KeyString("content", part.text);
  w->EndObject();
}

void ResponseWriter::WriteLogprobs(const ChoicePart& part, JsonWriter* w) const {
  w->Key("logprobs");
  if (!params_.logprobs || part.logprobs.empty()) {
    w->Null();
  } else if (chat_) {
    WriteChatLogprobs(style_, part.logprobs, w);
  } else {
    WriteCompletionLogprobs(style_, part.logprobs, w);
  }
}

void ResponseWriter::WriteEnd(const ChoiceEnd* end, JsonWriter* w) {
  w->Key("finish_reason");
  if (end == nullptr) {
    w->Null();
    return;
  }
  w->String(end->by_length ? "length" : "stop");
  w->Key("stop_reason");
  if (const auto* text = std::get_if<std::string>(&end->stop_reason)) {
    w->String(*text);
  } else if (const auto* id = std::get_if<TokenId>(&end->stop_reason)) {
    w->Int(*id);
  } else {
    w->Null();
  }
}

void ResponseWriter::WriteIds(std::string_view key, std::span<const TokenId> ids, JsonWriter* w) {
  w->Key(key);
  w->BeginArray();
  for (const TokenId id : ids) w->Int(id);
  w->EndArray();
}

void ResponseWriter::WriteUsage(const Usage& usage, JsonWriter* w) {
  w->BeginObject();
  w->KeyInt("prompt_tokens", usage.prompt_tokens);
  w->KeyInt("completion_tokens", usage.completion_tokens);
  w->KeyInt("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  w->Key("prompt_tokens_details");
  w->BeginObject();
  w->KeyInt("cached_tokens", usage.cached_tokens);
  w->EndObject();
  w->EndObject();
}

void ResponseWriter::UsageChunk(const Usage& usage, std::string* out) const {
  *out += chunk_head_;
  *out += ",\"choices\":[],\"usage\":";
  JsonWriter w(out);
  WriteUsage(usage, &w);
  *out += "}\n\n";
}

void ResponseWriter::ErrorEvent(std::string_view error_body, std::string* out) {
  *out += "data: ";
  *out += error_body;
  *out += "\n\n";
}

void ResponseWriter::Done(std::string* out) { *out += "data: [DONE]\n\n"; }

void ResponseWriter::WriteWholeChoice(const ChoicePart& part, JsonWriter* w) const {
  w->BeginObject();
  w->KeyInt("index", part.index);
  if (chat_) {
    w->Key("message");
    w->BeginObject();
    w->KeyString("role", "assistant");
    w->KeyString("content", part.text);
    w->KeyNull("refusal");
    w->EndObject();
  } else {
    w->KeyString("text", part.text);
  }
  w->Key("logprobs");
  if (!params_.logprobs) {
    w->Null();
  } else if (chat_) {
    WriteChatLogprobs(style_, part.logprobs, w);
  } else {
    WriteCompletionLogprobs(style_, part.logprobs, w);
  }
  WriteEnd(part.end, w);
  if (params_.return_token_ids) {
    if (!chat_) WriteIds("prompt_token_ids", part.prompt_token_ids, w);
    WriteIds("token_ids", part.token_ids, w);
  }
  w->EndObject();
}

// What had no effect, so that nobody takes it for granted.
void ResponseWriter::WriteIgnored(JsonWriter* w) const {
  if (params_.ignored.empty()) return;
  w->Key("vivace");
  w->BeginObject();
  w->Key("ignored");
  w->BeginArray();
  for (const std::string& name : params_.ignored) w->String(name);
  w->EndArray();
  w->EndObject();
}

std::string ResponseWriter::Whole(std::span<const ChoicePart> parts, const Usage& usage) const {
  std::string out = "{";
  out += Head(chat_ ? "chat.completion" : "text_completion");
  out += ',';
  JsonWriter w(&out);
  w.Key("choices");
  w.BeginArray();
  for (const ChoicePart& part : parts) WriteWholeChoice(part, &w);
  w.EndArray();
  w.Key("usage");
  WriteUsage(usage, &w);
  if (params_.return_token_ids && chat_) {
    WriteIds("prompt_token_ids",
             parts.empty() ? std::span<const TokenId>() : parts.front().prompt_token_ids, &w);
  }
  WriteIgnored(&w);
  w.EndObject();
  return out;
}

}  // namespace vivace::server
