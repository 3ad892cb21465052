#include "server/params/messages_readers.h"

#include <utility>

#include "server/json/strict_json.h"
#include "server/params/conversation.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

// Turns Anthropic's messages into chat's.
class BlockReader {
 public:
  explicit BlockReader(RequestParams* params) : params_(params) {}

  Status Read(const json::value& message, std::string path) {
    VIVACE_ASSIGN(const ItemReader reader, ItemReader::Of(message, std::move(path)));
    VIVACE_ASSIGN(const std::string_view role, reader.String("role"));
    VIVACE_RETURN_IF_ERROR(reader.ReportOthers({"role", "content"}, params_));
    const bool assistant = role == "assistant";
    if (!assistant && role != "user") {
      return reader.Wrong("role", "must be user or assistant; the system's text is `system`");
    }
    // What one role says in several messages is one turn.
    if (assistant != assistant_ || called_) EndTurn();
    assistant_ = assistant;
    called_ = false;
    const json::value* content = reader.Find("content");
    if (content == nullptr) return reader.Wrong("content", "is required");
    if (content->is_string()) {
      Say(content->get_string());
    } else if (const auto* blocks = content->if_array()) {
      for (size_t i = 0; i < blocks->size(); ++i) {
        VIVACE_RETURN_IF_ERROR(
            ReadBlock((*blocks)[i], fmt::format("{}[{}]", reader.Path("content"), i)));
      }
    } else {
      return WrongType(reader.Path("content"), "a string or a list of blocks", *content);
    }
    return {};
  }

  // The last turn is the assistant's, and text only: the answer goes on where it ends.
  bool ends_open() const { return assistant_ && !called_; }
  bool ends_with_call() const { return assistant_ && called_; }
  json::array Finish() {
    EndTurn();
    return turns_.Finish();
  }

 private:
  void Say(std::string_view text) {
    if (assistant_) {
      turns_.Speak(text);
    } else {
      parts_.push_back(json::object{{"type", "text"}, {"text", text}});
    }
  }

  void EndTurn() {
    if (!parts_.empty()) turns_.Say("user", TakeParts());
    turns_.EndTurn();
  }

  // One text is itself, several are parts.
  json::value TakeParts() {
    json::array parts = std::exchange(parts_, {});
    if (parts.size() == 1) return parts[0].get_object()["text"];
    return parts;
  }

  Status ReadBlock(const json::value& value, std::string path) {
    VIVACE_ASSIGN(const ItemReader block, ItemReader::Of(value, std::move(path)));
    VIVACE_ASSIGN(const std::string_view type, block.String("type"));
    called_ = false;
    if (type == "text") {
      VIVACE_ASSIGN(const std::string_view text, block.String("text"));
      Say(text);
      return block.ReportOthers({"type", "text"}, params_);
    }
    if (type == "tool_result" && !assistant_) return ReadResult(block);
    if (type == "tool_use" && assistant_) return ReadCall(block);
    if (type == "thinking" && assistant_) {
      VIVACE_ASSIGN(const std::string_view text, block.String("thinking"));
      NoteThought(text, block.Path("thinking"), params_);
      turns_.Think(text);
      return block.ReportOthers({"type", "thinking", "signature"}, params_);
    }
    if (type == "redacted_thinking" && assistant_) {
      return ReportOnce(block.Path("redacted_thinking"), params_);
    }
    if (type == "image" || type == "document") {
      return block.Wrong("type", fmt::format("is \"{}\"; this model reads text only", type));
    }
    return block.Wrong("type", fmt::format("is \"{}\"; a message of this role has {}", type,
                                           assistant_ ? "text, thinking and tool_use blocks"
                                                      : "text and tool_result blocks"));
  }

  Status ReadCall(const ItemReader& block) {
    VIVACE_ASSIGN(const std::string_view id, block.String("id"));
    VIVACE_ASSIGN(const std::string_view name, block.String("name"));
    const json::value* input = block.Find("input");
    if (input != nullptr && !input->is_object()) return block.Wrong("input", "must be an object");
    turns_.Call(id, name, input != nullptr ? input->get_object() : json::object());
    called_ = true;
    return block.ReportOthers({"type", "id", "name", "input"}, params_);
  }

  Status ReadResult(const ItemReader& block) {
    VIVACE_ASSIGN(const std::string_view id, block.String("tool_use_id"));
    json::value content = "";
    if (block.Find("content") != nullptr) {
      VIVACE_ASSIGN(content, block.Text("content", {"text"}, params_));
    }
    if (!parts_.empty()) turns_.Say("user", TakeParts());
    turns_.ToolResult(id, std::move(content));
    // No template knows of errors, so only a true one is worth a word.
    const json::value* failed = block.Find("is_error");
    if (failed != nullptr && *failed != false) {
      VIVACE_RETURN_IF_ERROR(ReportOnce(block.Path("is_error"), params_));
    }
    return block.ReportOthers({"type", "tool_use_id", "content", "is_error"}, params_);
  }

  RequestParams* params_;
  ConversationBuilder turns_;
  json::array parts_;  // texts of a user's turn, under way
  bool assistant_ = false;
  bool called_ = false;  // the last block was a call
};

// {"name", "description", "input_schema", "strict"}, as chat's function.
Result<json::object> FunctionOfSchemaTool(const ItemReader& tool, const json::object&,
                                          RequestParams* params) {
  VIVACE_ASSIGN(const std::string_view type, tool.StringOr("type"));
  if (!type.empty() && type != "custom") {
    return tool.Wrong("type",
                      fmt::format("is \"{}\"; only tools with an input_schema are offered", type));
  }
  VIVACE_ASSIGN(const std::string_view name, tool.String("name"));
  VIVACE_ASSIGN(const std::string_view description, tool.StringOr("description"));
  VIVACE_RETURN_IF_ERROR(
      tool.ReportOthers({"type", "name", "description", "input_schema", "strict"}, params));
  json::object function = {{"name", name}};
  if (!description.empty()) function["description"] = description;
  if (const json::value* schema = tool.Find("input_schema")) function["parameters"] = *schema;
  if (const json::value* strict = tool.Find("strict")) function["strict"] = *strict;
  return function;
}

}  // namespace

Status ReadBlockMessages(std::string_view name, const json::value& value, const ParamContext&,
                         RequestParams* params) {
  VIVACE_ASSIGN(const json::array* list, ReadTurnList(name, value));
  BlockReader reader(params);
  for (size_t i = 0; i < list->size(); ++i) {
    VIVACE_RETURN_IF_ERROR(reader.Read((*list)[i], fmt::format("{}[{}]", name, i)));
  }
  if (reader.ends_with_call()) {
    return WrongValue(name, "ends with a tool_use block; its tool_result must follow");
  }
  if (reader.ends_open()) params->continue_final_message = true;
  params->turns = std::make_shared<json::array>(reader.Finish());
  if (params->turns->empty()) return WrongValue(name, "says nothing; give at least one text");
  return {};
}

Status ReadSystem(std::string_view name, const json::value& value, const ParamContext&,
                  RequestParams* params) {
  VIVACE_ASSIGN(json::value text, ReadTextContent(value, std::string(name), {"text"}, params));
  if (!JoinedText(text).empty()) params->instructions = std::move(text);
  return {};
}

Status ReadSchemaTools(std::string_view name, const json::value& value, const ParamContext& context,
                       RequestParams* params) {
  return ReadToolsAsChat(name, value, FunctionOfSchemaTool, context, params);
}

Status ReadTypedToolChoice(std::string_view name, const json::value& value,
                           const ParamContext& context, RequestParams* params) {
  VIVACE_ASSIGN(const ItemReader choice, ItemReader::Of(value, std::string(name)));
  VIVACE_ASSIGN(const std::string_view type, choice.String("type"));
  VIVACE_RETURN_IF_ERROR(
      choice.ReportOthers({"type", "name", "disable_parallel_tool_use"}, params));
  json::value chat;
  if (type == "auto" || type == "none") {
    chat = type;
  } else if (type == "any") {
    chat = "required";
  } else if (type == "tool") {
    VIVACE_ASSIGN(const std::string_view tool, choice.String("name"));
    chat = json::object{{"type", "function"}, {"function", {{"name", tool}}}};
  } else {
    return choice.Wrong("type", "must be auto, any, tool or none");
  }
  const json::value* serial = choice.Find("disable_parallel_tool_use");
  if (serial != nullptr && !serial->is_bool()) {
    return WrongType(choice.Path("disable_parallel_tool_use"), "a boolean", *serial);
  }
  if (serial != nullptr && serial->get_bool()) {
    VIVACE_RETURN_IF_ERROR(ReadMadeAsChat(
        "parallel_tool_calls", choice.Path("disable_parallel_tool_use"), false, context, params));
  }
  return ReadMadeAsChat("tool_choice", name, std::move(chat), context, params);
}

Status ReadThinking(std::string_view name, const json::value& value, const ParamContext& context,
                    RequestParams* params) {
  VIVACE_ASSIGN(const ItemReader thinking, ItemReader::Of(value, std::string(name)));
  VIVACE_ASSIGN(const std::string_view type, thinking.String("type"));
  VIVACE_RETURN_IF_ERROR(thinking.ReportOthers({"type", "budget_tokens"}, params));
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    return thinking.Wrong("type", "must be enabled, disabled or adaptive");
  }
  if (type != "adaptive") params->thinking = type == "enabled";
  const json::value* budget = thinking.Find("budget_tokens");
  if (budget == nullptr) return {};
  if (type != "enabled") return ReportOnce(thinking.Path("budget_tokens"), params);
  if (AsInteger(*budget).value_or(0) < 1) {
    return thinking.Wrong("budget_tokens", "must be an integer of at least 1");
  }
  return ReadAsChat("thinking_token_budget", thinking.Path("budget_tokens"), *budget, context,
                    params);
}

Status ReadOutputConfig(std::string_view name, const json::value& value,
                        const ParamContext& context, RequestParams* params) {
  VIVACE_ASSIGN(const ItemReader config, ItemReader::Of(value, std::string(name)));
  if (const json::value* effort = config.Find("effort")) {
    VIVACE_RETURN_IF_ERROR(
        ReadAsChat("reasoning_effort", config.Path("effort"), *effort, context, params));
  }
  const json::value* format = config.Find("format");
  if (format == nullptr) return {};
  VIVACE_ASSIGN(const ItemReader reader, ItemReader::Of(*format, config.Path("format")));
  VIVACE_ASSIGN(const std::string_view type, reader.String("type"));
  if (type != "json_schema") return reader.Wrong("type", "must be json_schema");
  const json::value* schema = reader.Find("schema");
  if (schema == nullptr) return reader.Wrong("schema", "is required");
  return ReadMadeAsChat(
      "response_format", config.Path("format"),
      json::object{{"type", "json_schema"},
                   {"json_schema", {{"name", "output"}, {"schema", *schema}, {"strict", true}}}},
      context, params);
}

}  // namespace vivace::server
