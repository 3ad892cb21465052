// What OpenAI's chat and completion answers have in common, byte for byte as its clients expect it:
// heads, ends, usage, ids, the last chunks. A stream's chunks share their beginning, which is
// written once.
#pragma once

#include <string>
#include <string_view>

#include "server/openai/answer_writer.h"

namespace vivace::server {

class OpenAiWriter : public AnswerWriter {
 public:
  void Begin(const Usage&, std::string*) override {}
  void End(const Usage& usage, std::string* out) override;
  void Failure(const Error& error, std::string* out) override;

 protected:
  // `params` and `tokenizer` must outlive the writer. `object`: of whole answers; `chunk_object`:
  // of chunks.
  OpenAiWriter(const RequestParams& params, const Tokenizer& tokenizer, AnswerIdentity identity,
               std::string_view object, std::string_view chunk_object);

  // "data: {...," up to the choices; EndChunk follows them.
  void BeginChunk(std::string* out) const { *out += chunk_head_; }
  // The usage as the request wants it in every chunk, and the chunk's end; `end`: of its choice.
  void EndChunk(const ChoiceEnd* end, const Usage& usage, JsonWriter* w, std::string* out) const;

  // "{...," up to the choices.
  std::string BeginWhole() const { return whole_head_; }
  // Of the prompt, if the part has them.
  void WritePromptLogprobs(const ChoicePart& part, JsonWriter* w) const;
  // What had no effect and what was cut, so that nobody takes it for granted; and the end of the
  // answer.
  void EndWhole(JsonWriter* w) const;

  static void WriteEnd(const ChoiceEnd* end, std::string_view by_itself, JsonWriter* w);
  static void WriteUsage(const Usage& usage, JsonWriter* w);

  const RequestParams& params_;
  const LogprobStyle style_;

 private:
  std::string chunk_head_;
  std::string whole_head_;
};

}  // namespace vivace::server
