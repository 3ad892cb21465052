// Prompts of planned requests as token ids, turn after turn of a conversation: what has been said
// stands in front. One thread.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/model_text.h"
#include "load/workload.h"
#include "text/chat_template.h"

namespace vivace::bench {

// What was said so far: of texts and ids the tokens, of messages the messages.
struct Conversation {
  std::vector<TokenId> tokens;
  boost::json::array messages;
};

class TurnEncoder {
 public:
  explicit TurnEncoder(const ModelText* text) : text_(*text) {}

  // The tokens of a turn, which it adds to the conversation.
  Result<std::vector<TokenId>> Prompt(const load::PlannedRequest& turn, Conversation* conversation);
  // What came of it.
  void Answer(const load::PlannedRequest& turn, std::span<const TokenId> prompt,
              std::span<const TokenId> answer, Conversation* conversation) const;

 private:
  Result<std::vector<TokenId>> Render(const boost::json::array& messages);

  const ModelText& text_;
  std::optional<ChatTemplate> template_;  // parsed when first needed
};

}  // namespace vivace::bench
