// Readers of the parameters that say what an output must be: OpenAI's response_format, vLLM's
// structured_outputs and guided_*, the members of llama-server and SGLang. Each becomes the one
// GrammarSpec of the request (RequestParams::grammar); a second one is an error. What the
// description says is checked when it is compiled, on a prep thread.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/result.h"
#include "server/params/table.h"

namespace vivace::server {

Status ReadResponseFormat(std::string_view name, const json::value& value,
                          const ParamContext& context, RequestParams* params);
Status ReadStructuredOutputs(std::string_view name, const json::value& value,
                             const ParamContext& context, RequestParams* params);
// A schema: an object, true or false, or the text of one.
Status ReadJsonSchema(std::string_view name, const json::value& value, const ParamContext& context,
                      RequestParams* params);
Status ReadRegex(std::string_view name, const json::value& value, const ParamContext& context,
                 RequestParams* params);
Status ReadChoice(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params);
Status ReadGrammar(std::string_view name, const json::value& value, const ParamContext& context,
                   RequestParams* params);
// true: any JSON object.
Status ReadJsonObject(std::string_view name, const json::value& value, const ParamContext& context,
                      RequestParams* params);
Status ReadStructuralTag(std::string_view name, const json::value& value,
                         const ParamContext& context, RequestParams* params);

}  // namespace vivace::server
