#include "server/openai/answer_writer.h"

#include <utility>

#include "server/openai/chat_writer.h"
#include "server/openai/completion_writer.h"
#include "server/openai/messages_writer.h"
#include "server/openai/responses_writer.h"

namespace vivace::server {

std::unique_ptr<AnswerWriter> MakeAnswerWriter(const RequestParams& params,
                                               const Tokenizer& tokenizer,
                                               AnswerIdentity identity) {
  switch (params.endpoint) {
    case kCompletions:
      return std::make_unique<CompletionWriter>(params, tokenizer, std::move(identity));
    case kResponses:
      return std::make_unique<ResponsesWriter>(params, tokenizer, std::move(identity));
    case kMessages:
      return std::make_unique<MessagesWriter>(params, std::move(identity));
    default:
      return std::make_unique<ChatWriter>(params, tokenizer, std::move(identity));
  }
}

}  // namespace vivace::server
