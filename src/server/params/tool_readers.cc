// Readers of tools and tool_choice.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_members.h"
#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/params/known_members.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

bool IsToolName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= limits::kMaxToolNameBytes &&
         std::all_of(name.begin(), name.end(), allowed);
}

// How the client's protocol spells what chat has in a tool.
struct ToolNames {
  std::string_view function;  // from a tool to what describes its function
  std::string_view parameters;
};
ToolNames NamesOf(Endpoint endpoint) {
  if ((endpoint & (kMessages | kCountTokens)) != 0) return {"", ".input_schema"};
  return {endpoint == kResponses ? "" : ".function", ".parameters"};
}

Status CheckParameters(const std::string& field, const json::value& parameters) {
  const auto* schema = parameters.if_object();
  if (schema == nullptr) return WrongType(field, "a JSON Schema object", parameters);
  const json::value* type = schema->if_contains("type");
  if (type != nullptr && (!type->is_string() || type->get_string() != "object")) {
    return WrongValue(field, "must be a schema of \"type\": \"object\"");
  }
  const json::value* properties = FindPresent(*schema, "properties");
  if (properties != nullptr && !properties->is_object()) {
    return WrongType(field + ".properties", "an object", *properties);
  }
  return {};
}

Status CheckFunction(const std::string& path, const ToolNames& spelling,
                     const json::object& function, std::set<std::string_view>* names) {
  const json::value* name = function.if_contains("name");
  if (name == nullptr || !name->is_string() || !IsToolName(name->get_string())) {
    return WrongValue(path + ".name",
                      fmt::format("must be 1 to {} letters, digits, underscores or hyphens",
                                  limits::kMaxToolNameBytes));
  }
  if (!names->insert(name->get_string()).second) {
    return WrongValue(path + ".name", fmt::format("is \"{}\", as that of another tool; names must "
                                                  "differ",
                                                  std::string_view(name->get_string())));
  }
  const json::value* about = FindPresent(function, "description");
  if (about != nullptr && !about->is_string()) {
    return WrongType(path + ".description", "a string", *about);
  }
  const json::value* strict = FindPresent(function, "strict");
  if (strict != nullptr && !strict->is_bool()) {
    return WrongType(path + ".strict", "a boolean", *strict);
  }
  const json::value* parameters = FindPresent(function, "parameters");
  if (parameters == nullptr) return {};
  return CheckParameters(path + std::string(spelling.parameters), *parameters);
}

Status CheckTool(const std::string& path, const ToolNames& spelling, const json::value& tool,
                 std::set<std::string_view>* names) {
  const auto* object = tool.if_object();
  if (object == nullptr) return WrongType(path, "an object", tool);
  const json::value* type = object->if_contains("type");
  if (type == nullptr || !type->is_string() || type->get_string() != "function") {
    return WrongValue(path + ".type", "must be \"function\"; no other tools are offered");
  }
  const json::value* function = object->if_contains("function");
  if (function == nullptr || !function->is_object()) {
    return WrongValue(path, "needs a \"function\", which is an object");
  }
  return CheckFunction(path + std::string(spelling.function), spelling, function->get_object(),
                       names);
}

// The name in {"type": "function", "function": {"name": …}}; false: it is something else.
bool ReadFunctionName(const json::value& value, std::string* out) {
  const auto* object = value.if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
  const json::value* function = object == nullptr ? nullptr : object->if_contains("function");
  const auto* inner = function == nullptr ? nullptr : function->if_object();
  const json::value* name = inner == nullptr ? nullptr : inner->if_contains("name");
  if (type == nullptr || *type != "function" || name == nullptr || !name->is_string()) {
    return false;
  }
  *out = name->get_string();
  return true;
}

Status ReadAllowedTools(std::string_view name, const json::object& choice, bool flat,
                        RequestParams* params) {
  const std::string path = flat ? std::string(name) : fmt::format("{}.allowed_tools", name);
  const json::value* member = choice.if_contains("allowed_tools");
  const auto* allowed = member == nullptr ? nullptr : member->if_object();
  if (allowed == nullptr) return WrongValue(path, "must be an object with `mode` and `tools`");
  const json::value* mode = allowed->if_contains("mode");
  if (mode == nullptr || (*mode != "auto" && *mode != "required")) {
    return WrongValue(path + ".mode", "must be \"auto\" or \"required\"");
  }
  const json::value* tools = allowed->if_contains("tools");
  const auto* list = tools == nullptr ? nullptr : tools->if_array();
  if (list == nullptr || list->empty() || list->size() > limits::kMaxTools) {
    return WrongValue(path + ".tools",
                      fmt::format("must be a list of 1 to {} functions", limits::kMaxTools));
  }
  std::vector<std::string> names(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    if (ReadFunctionName((*list)[i], &names[i])) continue;
    return WrongValue(fmt::format("{}.tools[{}]", path, i),
                      flat ? "must be {\"type\": \"function\", \"name\": …}"
                           : "must be {\"type\": \"function\", \"function\": {\"name\": …}}");
  }
  params->allowed_tools = std::move(names);
  params->tool_choice = *mode == "auto" ? ToolChoice::kAuto : ToolChoice::kRequired;
  return {};
}

// Also for templates that look into a schema.
void DropNulls(json::array* tools) {
  for (json::value& tool : *tools) {
    json::object& function = tool.at("function").as_object();
    json::value* parameters = function.if_contains("parameters");
    json::object* schema = parameters == nullptr ? nullptr : parameters->if_object();
    if (schema == nullptr) continue;
    KeepMembers(schema, [](std::string_view name, const json::value& value) {
      return !value.is_null() || name == "const" || name == "default";
    });
  }
}

}  // namespace

std::string ToolSchemaName(const RequestParams& params, size_t tool) {
  const ToolNames names = NamesOf(params.endpoint);
  const size_t place = params.tool_places.empty() ? tool : params.tool_places[tool];
  return fmt::format("tools[{}]{}{}", place, names.function, names.parameters);
}

Status ReadTools(std::string_view name, const json::value& value, const ParamContext& context,
                 RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list", value);
  if (list->size() > limits::kMaxTools) {
    return WrongValue(
        name, fmt::format("has {} tools; at most {} are allowed", list->size(), limits::kMaxTools));
  }
  std::set<std::string_view> names;
  for (size_t i = 0; i < list->size(); ++i) {
    VIVACE_RETURN_IF_ERROR(
        CheckTool(fmt::format("{}[{}]", name, i), NamesOf(context.endpoint), (*list)[i], &names));
  }
  if (list->empty()) return {};
  const size_t bytes = json::serialize(*list).size();
  if (bytes > limits::kMaxToolSchemaBytes) {
    return WrongValue(name, fmt::format("has {} bytes of JSON; at most {} are allowed", bytes,
                                        limits::kMaxToolSchemaBytes));
  }
  // A member that is reported as ignored must not reach a template that prints its tools whole.
  json::value known = OnlyKnown(value, kChatToolMembers);
  DropNulls(&known.as_array());
  params->made.push_back(std::make_shared<const json::value>(std::move(known)));
  params->tools = &params->made.back()->get_array();
  return {};
}

// "none", "auto", "required", {"type": "function", "function": {"name": …}}, or {"type":
// "allowed_tools", "allowed_tools": {"mode": …, "tools": [one such object …]}}.
Status ReadToolChoice(std::string_view name, const json::value& value, const ParamContext& context,
                      RequestParams* params) {
  const bool flat = context.endpoint == kResponses;  // it was given chat's inner objects
  const std::string wanted = fmt::format(
      "must be \"none\", \"auto\", \"required\", {{\"type\": \"function\", {}}} or "
      "{{\"type\": \"allowed_tools\", …}}",
      flat ? "\"name\": …" : "\"function\": {\"name\": …}");
  if (const auto* text = value.if_string()) {
    if (*text == "none") {
      params->tool_choice = ToolChoice::kNone;
    } else if (*text == "auto") {
      params->tool_choice = ToolChoice::kAuto;
    } else if (*text == "required" || *text == "any") {
      params->tool_choice = ToolChoice::kRequired;
    } else {
      return WrongValue(name, wanted);
    }
    return {};
  }
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "a string or an object", value);
  const json::value* type = object->if_contains("type");
  if (type != nullptr && *type == "allowed_tools") {
    return ReadAllowedTools(name, *object, flat, params);
  }
  if (!ReadFunctionName(value, &params->tool_name)) return WrongValue(name, wanted);
  params->tool_choice = ToolChoice::kNamed;
  return {};
}

namespace {

const json::value* ToolNamed(const json::array& tools, std::string_view name) {
  const auto found = std::find_if(tools.begin(), tools.end(), [&](const json::value& tool) {
    return tool.at("function").at("name").as_string() == name;
  });
  return found == tools.end() ? nullptr : &*found;
}

// What is not allowed is not told to the model.
Status KeepAllowedTools(RequestParams* params) {
  for (const std::string& name : params->allowed_tools) {
    if (params->tools != nullptr && ToolNamed(*params->tools, name) != nullptr) continue;
    return WrongValue("tool_choice",
                      fmt::format("allows the function \"{}\", which is not in `tools`", name));
  }
  json::array kept;
  for (size_t i = 0; i < params->tools->size(); ++i) {
    const json::value& tool = (*params->tools)[i];
    const std::string_view name = tool.at("function").at("name").as_string();
    if (std::ranges::find(params->allowed_tools, name) == params->allowed_tools.end()) continue;
    kept.push_back(tool);
    params->tool_places.push_back(i);
  }
  params->made.push_back(std::make_shared<const json::value>(std::move(kept)));
  params->tools = &params->made.back()->get_array();
  return {};
}

}  // namespace

Status CheckToolChoice(RequestParams* params) {
  if (!params->allowed_tools.empty()) VIVACE_RETURN_IF_ERROR(KeepAllowedTools(params));
  if (!params->forces_calls()) return {};
  if (params->tools == nullptr) {
    return WrongValue("tool_choice", "asks for a call, but `tools` has none to call");
  }
  if (params->tool_choice != ToolChoice::kNamed) return {};
  if (ToolNamed(*params->tools, params->tool_name) != nullptr) return {};
  return WrongValue("tool_choice", "names a function that is not in `tools`");
}

}  // namespace vivace::server
