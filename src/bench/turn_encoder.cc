#include "bench/turn_encoder.h"

#include <utility>

#include "load/datasets/tokenizer_counter.h"

namespace vivace::bench {

Result<std::vector<TokenId>> TurnEncoder::Render(const boost::json::array& messages) {
  if (!template_) {
    if (text_.chat_template_source.empty()) {
      return Fail(ErrorCode::kUnsupported, "no_chat_template", "",
                  "the dataset has messages and the model brings no chat template; take a dataset "
                  "of texts");
    }
    VIVACE_ASSIGN(ChatTemplate parsed, ChatTemplate::Parse(text_.chat_template_source));
    template_.emplace(std::move(parsed));
  }
  return load::ChatTokens(*text_.tokenizer, *template_, messages);
}

Result<std::vector<TokenId>> TurnEncoder::Prompt(const load::PlannedRequest& turn,
                                                 Conversation* conversation) {
  if (const auto* messages = std::get_if<load::Messages>(&turn.prompt)) {
    for (const load::Message& message : *messages) {
      conversation->messages.push_back(
          boost::json::object{{"role", message.role}, {"content", message.content}});
    }
    return Render(conversation->messages);
  }
  std::vector<TokenId> tokens = conversation->tokens;
  if (const auto* ids = std::get_if<load::PromptIds>(&turn.prompt)) {
    tokens.insert(tokens.end(), ids->begin(), ids->end());
  } else {
    const EncodeOptions options{.add_special_tokens = tokens.empty()};
    const auto added = text_.tokenizer->Encode(std::get<std::string>(turn.prompt), options);
    tokens.insert(tokens.end(), added.begin(), added.end());
  }
  return tokens;
}

void TurnEncoder::Answer(const load::PlannedRequest& turn, std::span<const TokenId> prompt,
                         std::span<const TokenId> answer, Conversation* conversation) const {
  if (std::holds_alternative<load::Messages>(turn.prompt)) {
    conversation->messages.push_back(boost::json::object{
        {"role", "assistant"}, {"content", text_.tokenizer->Decode(answer, true)}});
    return;
  }
  conversation->tokens.assign(prompt.begin(), prompt.end());
  conversation->tokens.insert(conversation->tokens.end(), answer.begin(), answer.end());
}

}  // namespace vivace::bench
