#include "server/openai/openai_writer.h"

#include "server/openai/reports.h"

namespace vivace::server {
namespace {

// The members every object of the answer begins with.
std::string Head(const AnswerIdentity& identity, std::string_view object) {
  std::string head = "{";
  JsonWriter w(&head);
  w.KeyString("id", identity.id);
  w.KeyString("object", object);
  w.KeyInt("created", identity.created_s);
  w.KeyString("model", identity.model);
  head += ',';
  return head;
}

}  // namespace

OpenAiWriter::OpenAiWriter(const RequestParams& params, const Tokenizer& tokenizer,
                           AnswerIdentity identity, std::string_view object,
                           std::string_view chunk_object)
    : params_(params),
      style_{&tokenizer, params.sampling.logprobs, params.return_tokens_as_token_ids},
      chunk_head_("data: " + Head(identity, chunk_object)),
      whole_head_(Head(identity, object)) {}

void OpenAiWriter::EndChunk(const ChoiceEnd* end, const Usage& usage, JsonWriter* w,
                            std::string* out) const {
  if (end != nullptr) {  // the rest is in the headers
    Reports of_choice;
    of_choice.steered = end->steered;
    of_choice.deadline = end->by_deadline;
    WriteReports(of_choice, w);
  }
  if (params_.continuous_usage_stats) {
    w->Key("usage");
    WriteUsage(usage, w);
  } else if (params_.include_usage) {
    w->KeyNull("usage");
  }
  w->EndObject();
  *out += "\n\n";
}

void OpenAiWriter::End(const Usage& usage, std::string* out) {
  if (params_.include_usage) {
    BeginChunk(out);
    *out += "\"choices\":[],\"usage\":";
    JsonWriter w(out);
    WriteUsage(usage, &w);
    *out += "}\n\n";
  }
  *out += "data: [DONE]\n\n";
}

void OpenAiWriter::Failure(const Error& error, std::string* out) {
  *out += "data: ";
  *out += ErrorBody(error);
  *out += "\n\ndata: [DONE]\n\n";
}

void OpenAiWriter::WriteEnd(const ChoiceEnd* end, std::string_view by_itself, JsonWriter* w) {
  w->Key("finish_reason");
  if (end == nullptr) {
    w->Null();
    return;
  }
  w->String(end->by_length ? "length" : by_itself);
  w->Key("stop_reason");
  if (const auto* text = std::get_if<std::string>(&end->stop_reason)) {
    w->String(*text);
  } else if (const auto* id = std::get_if<TokenId>(&end->stop_reason)) {
    w->Int(*id);
  } else {
    w->Null();
  }
}

void OpenAiWriter::WriteUsage(const Usage& usage, JsonWriter* w) {
  w->BeginObject();
  w->KeyInt("prompt_tokens", usage.prompt_tokens);
  w->KeyInt("completion_tokens", usage.completion_tokens);
  w->KeyInt("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  w->Key("prompt_tokens_details");
  w->BeginObject();
  w->KeyInt("cached_tokens", usage.cached_tokens);
  w->EndObject();
  w->Key("completion_tokens_details");
  w->BeginObject();
  w->KeyInt("reasoning_tokens", usage.reasoning_tokens);
  w->EndObject();
  w->EndObject();
}

void OpenAiWriter::WritePromptLogprobs(const ChoicePart& part, JsonWriter* w) const {
  if (part.prompt_logprobs == nullptr) return;
  LogprobStyle style = style_;
  style.top = params_.prompt_logprobs.value_or(0);
  w->Key("prompt_logprobs");
  server::WritePromptLogprobs(style, *part.prompt_logprobs, w);
}

void OpenAiWriter::EndWhole(JsonWriter* w) const {
  WriteReports(params_, w);
  w->EndObject();
}

}  // namespace vivace::server
