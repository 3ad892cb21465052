#include "server/params/responses_readers.h"

#include <boost/json/serialize.hpp>
#include <utility>

#include "base/limits.h"
#include "server/json/json_writer.h"
#include "server/json/strict_json.h"
#include "server/params/conversation.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

const std::initializer_list<std::string_view> kTextTypes = {"input_text", "output_text", "text",
                                                            "refusal"};
constexpr size_t kMaxMetadataEntries = 16;  // as OpenAI

// Turns the items of `input` into turns.
class InputReader {
 public:
  explicit InputReader(RequestParams* params) : params_(params) {}

  Status Read(const json::value& item, std::string path) {
    VIVACE_ASSIGN(const ItemReader reader, ItemReader::Of(item, std::move(path)));
    VIVACE_ASSIGN(const std::string_view type, reader.StringOr("type"));
    if (type.empty() || type == "message") return ReadMessage(reader);
    if (type == "function_call") return ReadCall(reader);
    if (type == "function_call_output") return ReadOutput(reader);
    if (type == "reasoning") return ReadThought(reader);
    if (type == "item_reference") {
      return reader.Wrong("type",
                          "is \"item_reference\", but nothing is stored here: send the item");
    }
    return reader.Wrong(
        "type", fmt::format("is \"{}\"; message, function_call, function_call_output and reasoning "
                            "are understood",
                            type));
  }

  json::array Finish() { return turns_.Finish(); }

 private:
  Status ReadMessage(const ItemReader& item) {
    VIVACE_ASSIGN(const std::string_view role, item.String("role"));
    VIVACE_ASSIGN(json::value content, item.Text("content", kTextTypes, params_));
    VIVACE_RETURN_IF_ERROR(
        item.ReportOthers({"type", "role", "content", "id", "status", "phase"}, params_));
    if (role == "assistant") {
      if (turns_.spoke()) turns_.EndTurn();
      turns_.Speak(JoinedText(content));
      return {};
    }
    if (role != "user" && role != "system" && role != "developer") {
      return item.Wrong("role", "must be user, assistant, system or developer");
    }
    turns_.Say(role, std::move(content));
    return {};
  }

  Status ReadCall(const ItemReader& item) {
    VIVACE_ASSIGN(const std::string_view id, item.String("call_id"));
    VIVACE_ASSIGN(const std::string_view name, item.String("name"));
    VIVACE_ASSIGN(const std::string_view text, item.StringOr("arguments"));
    VIVACE_RETURN_IF_ERROR(
        item.ReportOthers({"type", "call_id", "name", "arguments", "id", "status"}, params_));
    json::object arguments;
    if (!text.empty()) {
      // Models write a member twice, and their answers come back.
      auto parsed = ParseStrictJson(text, "the text", MemberTwice::kLastWins);
      if (!parsed || !parsed->is_object()) {
        return item.Wrong("arguments", "must be the text of a JSON object");
      }
      arguments = std::move(parsed->get_object());
    }
    turns_.Call(id, name, std::move(arguments));
    return {};
  }

  Status ReadOutput(const ItemReader& item) {
    VIVACE_ASSIGN(const std::string_view id, item.String("call_id"));
    VIVACE_ASSIGN(json::value output, item.Text("output", kTextTypes, params_));
    VIVACE_RETURN_IF_ERROR(
        item.ReportOthers({"type", "call_id", "output", "id", "status"}, params_));
    turns_.ToolResult(id, std::move(output));
    return {};
  }

  // The thoughts themselves where they are given, else their summary.
  Status ReadThought(const ItemReader& item) {
    VIVACE_RETURN_IF_ERROR(
        item.ReportOthers({"type", "summary", "content", "id", "status"}, params_));
    if (turns_.spoke()) turns_.EndTurn();
    for (const char* member : {"content", "summary"}) {
      if (item.Find(member) == nullptr) continue;
      VIVACE_ASSIGN(const json::value text,
                    item.Text(member, {"reasoning_text", "summary_text"}, params_));
      const std::string joined = JoinedText(text);
      if (joined.empty()) continue;
      NoteThought(joined, item.Path(member), params_);
      turns_.Think(joined);
      break;
    }
    return {};
  }

  RequestParams* params_;
  ConversationBuilder turns_;
};

// {"type":"json_schema","name",...} -> {"type":"json_schema","json_schema":{"name",...}}
json::value NestedFormat(const json::object& flat) {
  const json::value* type = flat.if_contains("type");
  if (type == nullptr || *type != "json_schema") return flat;
  json::object inner = flat;
  inner.stable_erase("type");
  return json::object{{"type", "json_schema"}, {"json_schema", std::move(inner)}};
}

// {"type":"allowed_tools","mode","tools":[{"type":"function","name"}...]} ->
// {"type":"allowed_tools","allowed_tools":{"mode","tools":[{"type":"function","function":{"name"}}]}}
// What is of another form stays as it is, for chat's reader to refuse.
json::value NestedAllowedTools(const json::object& flat) {
  json::object inner;
  if (const json::value* mode = flat.if_contains("mode")) inner["mode"] = *mode;
  if (const json::value* tools = flat.if_contains("tools")) {
    inner["tools"] = *tools;
    json::array* list = inner["tools"].if_array();
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const json::object* tool = (*list)[i].if_object();
      const json::value* name = tool == nullptr ? nullptr : tool->if_contains("name");
      const json::value* type = tool == nullptr ? nullptr : tool->if_contains("type");
      if (name == nullptr || type == nullptr) continue;
      (*list)[i] = json::object{{"type", *type}, {"function", {{"name", *name}}}};
    }
  }
  return json::object{{"type", "allowed_tools"}, {"allowed_tools", std::move(inner)}};
}

// What a response says of a member that the request left out.
struct Echo {
  std::string_view name;
  std::string_view otherwise;
};
constexpr Echo kEchoes[] = {
    {"instructions", "null"},
    {"max_output_tokens", "null"},
    {"max_tool_calls", "null"},
    {"metadata", "{}"},
    {"parallel_tool_calls", "true"},
    {"reasoning", R"({"effort":null,"summary":null})"},
    {"text", R"({"format":{"type":"text"}})"},
    {"tool_choice", "\"auto\""},
    {"tools", "[]"},
};

// Chat's function without the object around it.
Result<json::object> FunctionOfFlatTool(const ItemReader& tool, const json::object& given,
                                        RequestParams*) {
  VIVACE_ASSIGN(const std::string_view type, tool.String("type"));
  if (type != "function") {
    return tool.Wrong("type", fmt::format("is \"{}\"; only \"function\" is offered: this server "
                                          "runs no tools of its own",
                                          type));
  }
  json::object function = given;
  function.stable_erase("type");
  return function;
}

}  // namespace

Status ReadInput(std::string_view name, const json::value& value, const ParamContext&,
                 RequestParams* params) {
  InputReader reader(params);
  if (value.is_string()) {
    params->turns = std::make_shared<json::array>(
        json::array{json::object{{"role", "user"}, {"content", value}}});
    return {};
  }
  if (!value.is_array()) return WrongType(name, "a string or a list of items", value);
  VIVACE_ASSIGN(const json::array* list, ReadTurnList(name, value));
  for (size_t i = 0; i < list->size(); ++i) {
    VIVACE_RETURN_IF_ERROR(reader.Read((*list)[i], fmt::format("{}[{}]", name, i)));
  }
  params->turns = std::make_shared<json::array>(reader.Finish());
  if (params->turns->empty()) return WrongValue(name, "says nothing; give at least one message");
  return {};
}

Status ReadInstructions(std::string_view name, const json::value& value, const ParamContext&,
                        RequestParams* params) {
  if (!value.is_string()) return WrongType(name, "a string", value);
  if (!value.get_string().empty()) params->instructions = value;
  return {};
}

Status ReadText(std::string_view name, const json::value& value, const ParamContext& context,
                RequestParams* params) {
  VIVACE_ASSIGN(const ItemReader text, ItemReader::Of(value, std::string(name)));
  const json::value* format = text.Find("format");
  if (format == nullptr) return {};
  if (!format->is_object()) return WrongType(text.Path("format"), "an object", *format);
  return ReadMadeAsChat("response_format", text.Path("format"), NestedFormat(format->get_object()),
                        context, params);
}

Status ReadReasoning(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params) {
  VIVACE_ASSIGN(const ItemReader reasoning, ItemReader::Of(value, std::string(name)));
  VIVACE_RETURN_IF_ERROR(reasoning.ReportOthers({"effort"}, params));
  const json::value* effort = reasoning.Find("effort");
  if (effort == nullptr) return {};
  return ReadAsChat("reasoning_effort", reasoning.Path("effort"), *effort, context, params);
}

Status ReadFlatTools(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params) {
  return ReadToolsAsChat(name, value, FunctionOfFlatTool, context, params);
}

Status ReadFlatToolChoice(std::string_view name, const json::value& value,
                          const ParamContext& context, RequestParams* params) {
  const auto* object = value.if_object();
  if (object == nullptr) return ReadAsChat("tool_choice", name, value, context, params);
  VIVACE_ASSIGN(const ItemReader choice, ItemReader::Of(value, std::string(name)));
  VIVACE_ASSIGN(const std::string_view type, choice.String("type"));
  if (type == "allowed_tools") {
    return ReadMadeAsChat("tool_choice", name, NestedAllowedTools(*object), context, params);
  }
  if (type != "function") {
    return choice.Wrong("type", fmt::format("is \"{}\"; only \"function\" and \"allowed_tools\" "
                                            "are offered",
                                            type));
  }
  VIVACE_ASSIGN(const std::string_view function, choice.String("name"));
  return ReadMadeAsChat("tool_choice", name,
                        json::object{{"type", "function"}, {"function", {{"name", function}}}},
                        context, params);
}

Status ReadInclude(std::string_view name, const json::value& value, const ParamContext&,
                   RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list of strings", value);
  for (const json::value& item : *list) {
    if (!item.is_string()) return WrongType(name, "a list of strings", item);
    const std::string_view what = item.get_string();
    if (what == "message.output_text.logprobs") {
      params->logprobs = true;
    } else {
      VIVACE_RETURN_IF_ERROR(ReportOnce(fmt::format("{}.{}", name, what), params));
    }
  }
  return {};
}

Status ReadTruncation(std::string_view name, const json::value& value, const ParamContext&,
                      RequestParams* params) {
  if (!value.is_string()) return WrongType(name, "a string", value);
  if (value.get_string() == "disabled") return {};
  if (value.get_string() != "auto") return WrongValue(name, "must be \"auto\" or \"disabled\"");
  return ReportIgnored(name, params);
}

Status ReadMetadata(std::string_view name, const json::value& value, const ParamContext&,
                    RequestParams*) {
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "an object of strings", value);
  if (object->size() > kMaxMetadataEntries) {
    return WrongValue(name, fmt::format("has {} entries; at most {} are allowed", object->size(),
                                        kMaxMetadataEntries));
  }
  for (const auto& [key, text] : *object) {
    if (!text.is_string()) {
      return WrongType(fmt::format("{}.{}", name, std::string_view(key)), "a string", text);
    }
  }
  return {};
}

std::string EchoedMembers(const json::object& body, const RequestParams& params) {
  std::string members;
  JsonWriter w(&members);
  for (const Echo& echo : kEchoes) {
    const json::value* value = body.if_contains(echo.name);
    const std::string text = value == nullptr || value->is_null() ? std::string(echo.otherwise)
                                                                  : json::serialize(*value);
    // A stream says it three times over; what is long is left out, rather than said to be absent.
    if (text.size() > limits::kMaxEchoedBytes) continue;
    w.Key(echo.name);
    w.Literal(text);
  }
  w.Key("temperature");
  w.Float(params.sampling.temperature);
  w.Key("top_p");
  w.Float(params.sampling.top_p);
  w.KeyInt("top_logprobs", params.top_logprobs.value_or(0));
  w.KeyString("truncation", "disabled");
  w.Key("store");
  w.Bool(false);
  w.Key("background");
  w.Bool(false);
  w.KeyNull("previous_response_id");
  return members;
}

}  // namespace vivace::server
