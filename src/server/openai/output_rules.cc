#include "server/openai/output_rules.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <utility>

namespace vivace::server {
namespace {

bool AnyStrict(const dialect::ToolSet& tools) {
  return std::any_of(tools.tools.begin(), tools.tools.end(),
                     [](const dialect::Tool& tool) { return tool.strict; });
}

}  // namespace

std::shared_ptr<const dialect::ToolSet> OfferedTools(const RequestParams& params) {
  if (params.tools == nullptr || params.tool_choice == ToolChoice::kNone) return nullptr;
  auto tools = std::make_shared<dialect::ToolSet>();
  for (const json::value& item : *params.tools) {
    const json::object& function = item.at("function").as_object();
    dialect::Tool tool;
    tool.name = std::string(function.at("name").as_string());
    if (const json::value* schema = function.if_contains("parameters")) tool.parameters = *schema;
    const json::value* strict = function.if_contains("strict");
    tool.strict = strict != nullptr && strict->is_bool() && strict->get_bool();
    tools->tools.push_back(std::move(tool));
  }
  return tools;
}

OutputReading ReadingOf(const RequestParams& params, const ServedModel& model,
                        std::shared_ptr<const dialect::ToolSet> tools, ReasoningStart reasoning) {
  OutputReading reading;
  if (tools == nullptr && !model.dialect.always_parses()) return reading;
  reading.dialect = &model.dialect;
  reading.reasoning = reasoning;
  reading.tools = std::move(tools);
  reading.include_reasoning = params.include_reasoning;
  return reading;
}

bool MustObeySchemas(const RequestParams& params, const dialect::ToolSet* tools) {
  return tools != nullptr && (params.forces_calls() || AnyStrict(*tools));
}

std::optional<OutputGrammar> GrammarOf(const RequestParams& params, const OutputReading& reading,
                                       const ServedModel& model, const json::value* content,
                                       bool schemas) {
  OutputRules rules;
  rules.dialect = &model.dialect;
  rules.reasoning = reading.reasoning;
  rules.content = content;
  rules.parallel = params.parallel_tool_calls;
  rules.schemas = schemas;
  if (const dialect::ToolSet* tools = reading.tools.get(); tools != nullptr) {
    rules.tools = tools;
    rules.calls = params.forces_calls() ? OutputRules::Calls::kRequired : OutputRules::Calls::kAuto;
    if (params.tool_choice == ToolChoice::kNamed) rules.only = params.tool_name;
    // Without marks only a wish for strict arguments is worth taking JSON answers for calls.
    const bool lazy = rules.calls == OutputRules::Calls::kAuto && content == nullptr;
    if (lazy && !CallsHaveMarks(model.dialect) && !AnyStrict(*tools)) return std::nullopt;
    return MakeOutputGrammar(rules);
  }
  if (content == nullptr) return std::nullopt;
  return MakeOutputGrammar(rules);
}

}  // namespace vivace::server
