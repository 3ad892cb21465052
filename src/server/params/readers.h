// Readers of the parameters that have a shape of their own; the table points at them.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/result.h"
#include "server/params/request_params.h"
#include "server/params/table.h"

namespace vivace::server {

Status ReadPrompt(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params);
Status ReadFirstTexts(std::string_view name, const json::value& value, const ParamContext& context,
                      RequestParams* params);
Status ReadSecondTexts(std::string_view name, const json::value& value, const ParamContext& context,
                       RequestParams* params);
Status ReadPooling(std::string_view name, const json::value& value, const ParamContext& context,
                   RequestParams* params);
Status ReadEncodingFormat(std::string_view name, const json::value& value,
                          const ParamContext& context, RequestParams* params);
Status ReadMessages(std::string_view name, const json::value& value, const ParamContext& context,
                    RequestParams* params);
Status ReadTokens(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params);
Status ReadStop(std::string_view name, const json::value& value, const ParamContext& context,
                RequestParams* params);
Status ReadStopTokenIds(std::string_view name, const json::value& value,
                        const ParamContext& context, RequestParams* params);
Status ReadAllowedTokenIds(std::string_view name, const json::value& value,
                           const ParamContext& context, RequestParams* params);
Status ReadBadWords(std::string_view name, const json::value& value, const ParamContext& context,
                    RequestParams* params);
Status ReadLogitBias(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params);
Status ReadStreamOptions(std::string_view name, const json::value& value,
                         const ParamContext& context, RequestParams* params);
Status ReadTools(std::string_view name, const json::value& value, const ParamContext& context,
                 RequestParams* params);
// The client's name of the schema of one of `params.tools`.
std::string ToolSchemaName(const RequestParams& params, size_t tool);
// The checks that concern tools and tool_choice together.
// Whether the tools that tool_choice names are there; leaves the allowed ones in `tools`.
Status CheckToolChoice(RequestParams* params);
Status ReadDocuments(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params);
Status ReadReasoningEffort(std::string_view name, const json::value& value,
                           const ParamContext& context, RequestParams* params);
Status ReadToolChoice(std::string_view name, const json::value& value, const ParamContext& context,
                      RequestParams* params);
Status ReadChatTemplateKwargs(std::string_view name, const json::value& value,
                              const ParamContext& context, RequestParams* params);
Status ReadRequestId(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params);

// A client's own id of its request.
// 1 to limits::kMaxRequestIdBytes letters, digits and "._:-".
bool IsRequestId(std::string_view text);

// Notes a member that has no effect; too many of them are an error.
// ReportedName: the name that is noted, which is not long.
std::string ReportedName(std::string_view name);
Status ReportIgnored(std::string_view name, RequestParams* params);

// kInvalidArgument "invalid_type": "NAME must be WANTED, not KIND".
tl::unexpected<Error> WrongType(std::string_view name, std::string_view wanted,
                                const json::value& value);
// kInvalidArgument "invalid_value" about `name`; `rest` continues the sentence after the name.
tl::unexpected<Error> WrongValue(std::string_view name, std::string_view rest);

}  // namespace vivace::server
