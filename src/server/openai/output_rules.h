// What a request's tools and reasoning mean for its outputs: how they are read, and the grammar
// that they obey. Pure; prep threads.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <optional>

#include "base/result.h"
#include "server/openai/output_reading.h"
#include "server/openai/served_model.h"
#include "server/params/request_params.h"
#include "text/dialect/output_grammar.h"

namespace vivace::server {

// The tools that the model is offered; null where there are none, or none may be called.
std::shared_ptr<const dialect::ToolSet> OfferedTools(const RequestParams& params);

OutputReading ReadingOf(const RequestParams& params, const ServedModel& model,
                        std::shared_ptr<const dialect::ToolSet> tools, ReasoningStart reasoning);

// The grammar that tools, reasoning and `content` (what the content must be, in xgrammar's terms;
// null: anything) ask for; nothing if outputs are free. `schemas`: arguments obey their schemas.
std::optional<OutputGrammar> GrammarOf(const RequestParams& params, const OutputReading& reading,
                                       const ServedModel& model, const json::value* content,
                                       bool schemas);

// A call's arguments have to obey its schema, or the request is refused.
bool MustObeySchemas(const RequestParams& params, const dialect::ToolSet* tools);

}  // namespace vivace::server
