// Readers of the parameters of Anthropic's /v1/messages, which say chat's things in other shapes.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/params/table.h"

namespace vivace::server {

// Turns of content blocks: text, tool_use, tool_result, thinking. A last turn of the assistant's is
// one that the answer continues.
Status ReadBlockMessages(std::string_view name, const json::value& value,
                         const ParamContext& context, RequestParams* params);
// A string or text blocks.
Status ReadSystem(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params);
// {name, description, input_schema}.
Status ReadSchemaTools(std::string_view name, const json::value& value, const ParamContext& context,
                       RequestParams* params);
// {"type": auto, any, tool, none}.
Status ReadTypedToolChoice(std::string_view name, const json::value& value,
                           const ParamContext& context, RequestParams* params);
// {"type": enabled, disabled or adaptive, "budget_tokens"}.
Status ReadThinking(std::string_view name, const json::value& value, const ParamContext& context,
                    RequestParams* params);
// {"format": {"type": "json_schema", "schema"}, "effort"}.
Status ReadOutputConfig(std::string_view name, const json::value& value,
                        const ParamContext& context, RequestParams* params);

}  // namespace vivace::server
