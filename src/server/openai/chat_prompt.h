// The prompt of a chat: messages through the template to token ids. Text of messages can never
// become control tokens. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "server/openai/served_model.h"
#include "server/params/request_params.h"

namespace vivace::server {

struct RenderedChat {
  std::string text;
  std::vector<TokenId> ids;
  ReasoningStart reasoning = ReasoningStart::kNone;  // how an output of this prompt begins
  // Members of messages that the template has no use for, as clients spell them. Found, where a
  // message has one, by what the prompt is without it: one more rendering for each kind, of three.
  std::vector<std::string_view> unread;
};
Result<RenderedChat> RenderChat(const RequestParams& params, const ServedModel& model);

// The template lets a request say whether to think.
bool KnowsThinking(const ChatTemplate& chat_template);
// It reads the effort, or whether to think at all. Both cost a few walks of the template.
bool KnowsReasoningEffort(const ChatTemplate& chat_template);

// kInvalidArgument "context_length_exceeded" for a text too long for the context whatever its
// tokens are: a cheap look before tokenising.
Status CheckTextFits(std::string_view text, std::string_view field, const ServedModel& model);

}  // namespace vivace::server
