// Answers of /v1/completions: text, with the pieces of an output joined as they came.
#pragma once

#include <string>

#include "server/openai/openai_writer.h"

namespace vivace::server {

class CompletionWriter final : public OpenAiWriter {
 public:
  CompletionWriter(const RequestParams& params, const Tokenizer& tokenizer,
                   AnswerIdentity identity);

  void Open(const ChoicePart&, const Usage&, std::string*) override {}
  void Delta(const ChoicePart& part, const Usage& usage, std::string* out) override;
  void Close(const ChoicePart& part, const Usage& usage, std::string* out) override;
  std::string Whole(std::span<const ChoicePart> parts, const Usage& usage) override;

 private:
  void WriteChoice(const ChoicePart& part, bool whole, JsonWriter* w) const;
};

}  // namespace vivace::server
