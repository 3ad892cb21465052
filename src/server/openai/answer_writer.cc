#include "server/openai/answer_writer.h"

#include <utility>

#include "server/openai/chat_writer.h"
#include "server/openai/completion_writer.h"

namespace vivace::server {

std::unique_ptr<AnswerWriter> MakeAnswerWriter(const RequestParams& params,
                                               const Tokenizer& tokenizer,
                                               AnswerIdentity identity) {
  if (params.endpoint == kCompletions) {
    return std::make_unique<CompletionWriter>(params, tokenizer, std::move(identity));
  }
  return std::make_unique<ChatWriter>(params, tokenizer, std::move(identity));
}

}  // namespace vivace::server
