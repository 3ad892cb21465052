#include "server/openai/completion_writer.h"

#include <utility>

namespace vivace::server {

CompletionWriter::CompletionWriter(const RequestParams& params, const Tokenizer& tokenizer,
                                   AnswerIdentity identity)
    : OpenAiWriter(params, tokenizer, std::move(identity), "text_completion", "text_completion") {}

void CompletionWriter::WriteChoice(const ChoicePart& part, bool whole, JsonWriter* w) const {
  w->BeginObject();
  w->KeyInt("index", part.index);
  if (part.pieces.size() == 1) {
    w->KeyString("text", part.pieces.front().text);
  } else {
    std::string text;
    for (const OutputPiece& piece : part.pieces) text += piece.text;
    w->KeyString("text", text);
  }
  w->Key("logprobs");
  if (params_.logprobs && (whole || !part.logprobs.empty())) {
    WriteCompletionLogprobs(style_, part.logprobs, w);
  } else {
    w->Null();
  }
  WriteEnd(part.end, "stop", w);
  if (params_.return_token_ids) {
    if (part.first) w->KeyInts("prompt_token_ids", part.prompt_token_ids);
    w->KeyInts("token_ids", part.token_ids);
  }
  WritePromptLogprobs(part, w);
  w->EndObject();
}

void CompletionWriter::Delta(const ChoicePart& part, const Usage& usage, std::string* out) {
  BeginChunk(out);
  JsonWriter w(out);
  w.Key("choices");
  w.BeginArray();
  WriteChoice(part, /*whole=*/false, &w);
  w.EndArray();
  EndChunk(part.end, usage, &w, out);
}

void CompletionWriter::Close(const ChoicePart& part, const Usage& usage, std::string* out) {
  Delta(part, usage, out);
}

std::string CompletionWriter::Whole(std::span<const ChoicePart> parts, const Usage& usage) {
  std::string out = BeginWhole();
  JsonWriter w(&out);
  w.Key("choices");
  w.BeginArray();
  for (const ChoicePart& part : parts) WriteChoice(part, /*whole=*/true, &w);
  w.EndArray();
  w.Key("usage");
  WriteUsage(usage, &w);
  EndWhole(&w);
  return out;
}

}  // namespace vivace::server
