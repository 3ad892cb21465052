#include "server/params/grammar_readers.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/params/conversation.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

using Kind = GrammarSpec::Kind;

Status Take(std::string_view name, GrammarSpec spec, RequestParams* params) {
  if (params->grammar) {
    return Fail(ErrorCode::kInvalidArgument, "conflicting_parameters", std::string(name),
                "`{}` and `{}` both say what the output must be; give one of them", name,
                params->grammar->field);
  }
  spec.field = std::string(name);
  params->grammar = std::move(spec);
  return {};
}

GrammarSpec Spec(Kind kind, std::string text = {}) {
  GrammarSpec spec;
  spec.kind = kind;
  spec.text = std::move(text);
  return spec;
}

Status TakeText(std::string_view name, Kind kind, const json::value& value, RequestParams* params) {
  if (!value.is_string()) return WrongType(name, "a string", value);
  return Take(name, Spec(kind, std::string(value.get_string())), params);
}

// What a response_format of a type reads; what it has beside that may be of another type's.
struct FormatType {
  std::string_view type;
  std::initializer_list<std::string_view> read;
};
const FormatType kFormatTypes[] = {{"text", {"type"}},
                                   {"json_object", {"type", "schema"}},
                                   {"json_schema", {"type", "json_schema"}}};

Status ReportUnusedOfFormat(std::string_view name, std::string_view type,
                            const json::object& format, RequestParams* params) {
  const auto found = std::ranges::find(kFormatTypes, type, &FormatType::type);
  if (found == std::end(kFormatTypes)) return {};
  // Some clients put the schema straight into response_format.
  if (type == "json_schema" && !format.contains("json_schema")) return {};
  for (const auto& [key, value] : format) {
    const std::string_view member = key;
    if (value.is_null() || std::ranges::find(found->read, member) != found->read.end()) continue;
    VIVACE_RETURN_IF_ERROR(ReportOnce(fmt::format("{}.{}", name, member), params));
  }
  return {};
}

// JSON as a value or as the text of one, as vLLM takes both.
Result<std::string> JsonOf(std::string_view name, const json::value& value) {
  if (!value.is_string()) return json::serialize(value);
  const std::string_view text = value.get_string();
  if (auto parsed = ParseStrictJson(text, fmt::format("`{}`", name)); !parsed) {
    parsed.error().field = std::string(name);
    return tl::unexpected<Error>(std::move(parsed.error()));
  }
  return std::string(text);
}

}  // namespace

Status ReadJsonSchema(std::string_view name, const json::value& value, const ParamContext&,
                      RequestParams* params) {
  VIVACE_ASSIGN(std::string text, JsonOf(name, value));
  return Take(name, Spec(Kind::kJsonSchema, std::move(text)), params);
}

Status ReadRegex(std::string_view name, const json::value& value, const ParamContext&,
                 RequestParams* params) {
  return TakeText(name, Kind::kRegex, value, params);
}

Status ReadGrammar(std::string_view name, const json::value& value, const ParamContext&,
                   RequestParams* params) {
  // llama-server's default for its own name.
  if (name == "grammar" && value.is_string() && value.get_string().empty()) return {};
  return TakeText(name, Kind::kEbnf, value, params);
}

Status ReadChoice(std::string_view name, const json::value& value, const ParamContext&,
                  RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list of strings", value);
  if (list->size() > limits::kMaxGrammarChoices) {
    return WrongValue(name, fmt::format("has {} choices; at most {} are allowed", list->size(),
                                        limits::kMaxGrammarChoices));
  }
  GrammarSpec spec = Spec(Kind::kChoice);
  for (const auto& choice : *list) {
    if (!choice.is_string()) {
      return WrongType(fmt::format("{}[{}]", name, spec.choices.size()), "a string", choice);
    }
    spec.choices.emplace_back(choice.get_string());
  }
  return Take(name, std::move(spec), params);
}

Status ReadJsonObject(std::string_view name, const json::value& value, const ParamContext&,
                      RequestParams* params) {
  if (!value.is_bool()) return WrongType(name, "a boolean", value);
  if (!value.get_bool()) return {};
  return Take(name, Spec(Kind::kJsonObject), params);
}

Status ReadStructuralTag(std::string_view name, const json::value& value, const ParamContext&,
                         RequestParams* params) {
  VIVACE_ASSIGN(std::string text, JsonOf(name, value));
  return Take(name, Spec(Kind::kStructural, std::move(text)), params);
}

Status ReadResponseFormat(std::string_view name, const json::value& value,
                          const ParamContext& context, RequestParams* params) {
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "an object", value);
  const auto* type = object->if_contains("type");
  if (type == nullptr || !type->is_string()) {
    return WrongValue(name, "needs a \"type\", which is a string");
  }
  const std::string_view kind = type->get_string();
  VIVACE_RETURN_IF_ERROR(ReportUnusedOfFormat(name, kind, *object, params));
  if (kind == "text") return {};
  if (kind == "json_object") {
    // llama-server's shape has the schema here.
    const auto* schema = object->if_contains("schema");
    if (schema != nullptr && !schema->is_null()) {
      return ReadJsonSchema(name, *schema, context, params);
    }
    return Take(name, Spec(Kind::kJsonObject), params);
  }
  if (kind == "structural_tag") return ReadStructuralTag(name, value, context, params);
  if (kind != "json_schema") {
    return WrongValue(name,
                      "has an unknown \"type\"; text, json_object, json_schema and "
                      "structural_tag are supported");
  }
  const auto* outer = object->if_contains("json_schema");
  // text.format and output_config.format have no inner object; they were given one.
  const bool flat = name.ends_with(".format");
  const auto* holder = outer == nullptr ? object : outer->if_object();
  const auto* schema = holder == nullptr ? nullptr : holder->if_contains("schema");
  if (schema == nullptr || schema->is_null()) {
    return WrongValue(name, flat ? "needs a \"schema\", which is an object"
                                 : "needs \"json_schema\": {\"name\": ..., \"schema\": {...}}");
  }
  if (schema->is_string()) {
    const bool inner = !flat && outer != nullptr;
    return WrongType(fmt::format("{}.{}schema", name, inner ? "json_schema." : ""), "an object",
                     *schema);
  }
  return ReadJsonSchema(name, *schema, context, params);
}

Status ReadStructuredOutputs(std::string_view name, const json::value& value,
                             const ParamContext& context, RequestParams* params) {
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "an object", value);
  using Reader =
      Status (*)(std::string_view, const json::value&, const ParamContext&, RequestParams*);
  constexpr std::pair<std::string_view, Reader> kReaders[] = {
      {"json", ReadJsonSchema},        {"regex", ReadRegex},
      {"choice", ReadChoice},          {"grammar", ReadGrammar},
      {"json_object", ReadJsonObject}, {"structural_tag", ReadStructuralTag}};
  bool asks = false;
  for (const auto& [key, member] : *object) {
    if (member.is_null()) continue;
    const std::string path = fmt::format("{}.{}", name, std::string_view(key));
    const auto* found = std::find_if(std::begin(kReaders), std::end(kReaders),
                                     [&](const auto& one) { return one.first == key; });
    if (found != std::end(kReaders)) {
      asks = true;
      VIVACE_RETURN_IF_ERROR(found->second(path, member, context, params));
    } else if (!member.is_bool() || member.get_bool()) {  // vLLM's flags, at rest
      return WrongValue(path,
                        "is not offered; json, regex, choice, grammar, json_object and "
                        "structural_tag are");
    }
  }
  if (!asks) {
    return WrongValue(name,
                      "needs one of json, regex, choice, grammar, json_object, "
                      "structural_tag");
  }
  return {};
}

}  // namespace vivace::server
