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
};
Result<RenderedChat> RenderChat(const RequestParams& params, const ServedModel& model);

// The variable by which templates (Qwen 3's and those after it) let a request turn thinking off.
inline constexpr char kThinkingSwitch[] = "enable_thinking";

// kInvalidArgument "context_length_exceeded" for a text too long for the context whatever its
// tokens are: a cheap look before tokenising.
Status CheckTextFits(std::string_view text, std::string_view field, const ServedModel& model);

}  // namespace vivace::server
