// Readers of the parameters of /v1/responses, which say chat's things in other shapes, and what its
// answers repeat of the request.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/params/table.h"

namespace vivace::server {

// A string, or items: messages, function calls and their outputs, reasoning.
Status ReadInput(std::string_view name, const json::value& value, const ParamContext& context,
                 RequestParams* params);
Status ReadInstructions(std::string_view name, const json::value& value,
                        const ParamContext& context, RequestParams* params);
// {"format": as response_format, but flat}.
Status ReadText(std::string_view name, const json::value& value, const ParamContext& context,
                RequestParams* params);
// {"effort": as reasoning_effort}.
Status ReadReasoning(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params);
// Function tools without chat's inner object.
Status ReadFlatTools(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params);
Status ReadFlatToolChoice(std::string_view name, const json::value& value,
                          const ParamContext& context, RequestParams* params);
Status ReadInclude(std::string_view name, const json::value& value, const ParamContext& context,
                   RequestParams* params);
Status ReadTruncation(std::string_view name, const json::value& value, const ParamContext& context,
                      RequestParams* params);
Status ReadMetadata(std::string_view name, const json::value& value, const ParamContext& context,
                    RequestParams* params);

// The members that a response object repeats, as JSON members without braces.
std::string EchoedMembers(const json::object& body, const RequestParams& params);

}  // namespace vivace::server
