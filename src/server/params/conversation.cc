#include "server/params/conversation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json_members.h"
#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

bool Holds(std::initializer_list<std::string_view> list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// What answers have beside a text. They come back with it, mostly empty, and nobody reads them.
const std::initializer_list<std::string_view> kNotes = {"annotations", "citations"};

// "messages[3].content[0].x" -> "messages[].content[].x"
std::string WithoutIndices(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool index = c >= '0' && c <= '9' && !out.empty() && out.back() == '[';
    if (!index) out += c;
  }
  return out;
}

}  // namespace

bool IsEmptyNote(std::string_view name, const json::value& value) {
  return Holds(kNotes, name) && value.is_array() && value.get_array().empty();
}

void ConversationBuilder::Say(std::string_view role, json::value content) {
  EndTurn();
  out_.push_back(json::object{{"role", role}, {"content", std::move(content)}});
}

void ConversationBuilder::ToolResult(std::string_view call_id, json::value content) {
  EndTurn();
  out_.push_back(
      json::object{{"role", "tool"}, {"tool_call_id", call_id}, {"content", std::move(content)}});
}

void ConversationBuilder::Append(std::string_view member, std::string_view text) {
  json::value& value = turn_[member];
  if (!value.is_string()) value = json::string();
  value.get_string().append(text);
}

void ConversationBuilder::Call(std::string_view id, std::string_view name, json::object arguments) {
  json::value& calls = turn_["tool_calls"];
  if (!calls.is_array()) calls = json::array();
  calls.get_array().push_back(
      json::object{{"id", id},
                   {"type", "function"},
                   {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
}

void ConversationBuilder::EndTurn() {
  if (turn_.empty()) return;
  turn_["role"] = "assistant";
  out_.push_back(std::exchange(turn_, {}));
}

json::array ConversationBuilder::Finish() {
  EndTurn();
  return std::move(out_);
}

Result<ItemReader> ItemReader::Of(const json::value& value, std::string path) {
  const json::object* object = value.if_object();
  if (object == nullptr) return WrongType(path, "an object", value);
  return ItemReader(*object, std::move(path));
}

std::string ItemReader::Path(std::string_view member) const {
  return fmt::format("{}.{}", path_, member);
}

tl::unexpected<Error> ItemReader::Wrong(std::string_view member, std::string_view rest) const {
  return WrongValue(member.empty() ? path_ : Path(member), rest);
}

const json::value* ItemReader::Find(std::string_view member) const {
  return FindPresent(*object_, member);
}

Result<std::string_view> ItemReader::String(std::string_view member) const {
  const json::value* value = Find(member);
  if (value == nullptr) return Wrong(member, "is required");
  if (!value->is_string()) return WrongType(Path(member), "a string", *value);
  return std::string_view(value->get_string());
}

Result<std::string_view> ItemReader::StringOr(std::string_view member) const {
  if (Find(member) == nullptr) return std::string_view();
  return String(member);
}

Result<json::value> ItemReader::Text(std::string_view member,
                                     std::initializer_list<std::string_view> types,
                                     RequestParams* params) const {
  const json::value* content = Find(member);
  if (content == nullptr) return Wrong(member, "is required");
  return ReadTextContent(*content, Path(member), types, params);
}

Status ItemReader::ReportOthers(std::initializer_list<std::string_view> known,
                                RequestParams* params) const {
  for (const auto& [name, value] : *object_) {
    if (value.is_null() || Holds(known, name)) continue;
    if (IsEmptyNote(name, value)) continue;
    VIVACE_RETURN_IF_ERROR(ReportOnce(Path(name), params));
  }
  return {};
}

Result<json::value> ReadTextContent(const json::value& content, const std::string& path,
                                    std::initializer_list<std::string_view> types,
                                    RequestParams* params) {
  if (content.is_string()) return content;
  if (!content.is_array()) return WrongType(path, "a string or a list", content);
  json::array parts;
  for (size_t i = 0; i < content.get_array().size(); ++i) {
    VIVACE_ASSIGN(const ItemReader part,
                  ItemReader::Of(content.get_array()[i], fmt::format("{}[{}]", path, i)));
    VIVACE_ASSIGN(const std::string_view type, part.String("type"));
    if (!Holds(types, type)) {
      return part.Wrong("type", fmt::format("is \"{}\"; this model reads text only", type));
    }
    VIVACE_ASSIGN(const std::string_view text, part.String(type == "refusal" ? "refusal" : "text"));
    VIVACE_RETURN_IF_ERROR(part.ReportOthers({"type", "text", "refusal", "logprobs"}, params));
    parts.push_back(json::object{{"type", "text"}, {"text", text}});
  }
  return json::value(std::move(parts));
}

std::string JoinedText(const json::value& content) {
  if (content.is_string()) return std::string(content.get_string());
  std::string text;
  for (const json::value& part : content.get_array()) {
    text += std::string_view(part.get_object().at("text").get_string());
  }
  return text;
}

Result<const json::array*> ReadTurnList(std::string_view name, const json::value& value) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list", value);
  if (list->empty()) return WrongValue(name, "is empty; give at least one message");
  if (list->size() > limits::kMaxMessages) {
    return WrongValue(name, fmt::format("has {} entries; at most {} are allowed", list->size(),
                                        limits::kMaxMessages));
  }
  return list;
}

Status ReadAsChat(std::string_view row, std::string_view member, const json::value& value,
                  const ParamContext& context, RequestParams* params) {
  const ParamRow* found = FindParam(row, kChat);
  VIVACE_CHECK(found != nullptr);
  return ReadParam(*found, member, value, context, params);
}

Status ReadMadeAsChat(std::string_view row, std::string_view member, json::value value,
                      const ParamContext& context, RequestParams* params) {
  params->made.push_back(std::make_shared<const json::value>(std::move(value)));
  return ReadAsChat(row, member, *params->made.back(), context, params);
}

Status ReadToolsAsChat(std::string_view name, const json::value& value, FunctionOf function,
                       const ParamContext& context, RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list", value);
  json::array tools;
  for (size_t i = 0; i < list->size(); ++i) {
    VIVACE_ASSIGN(const ItemReader tool,
                  ItemReader::Of((*list)[i], fmt::format("{}[{}]", name, i)));
    VIVACE_ASSIGN(json::object made, function(tool, (*list)[i].get_object(), params));
    tools.push_back(json::object{{"type", "function"}, {"function", std::move(made)}});
  }
  return ReadMadeAsChat("tools", name, std::move(tools), context, params);
}

Status ReportOnce(std::string_view name, RequestParams* params) {
  const std::string kind = WithoutIndices(ReportedName(name));
  const auto same = [&](const std::string& known) { return WithoutIndices(known) == kind; };
  if (std::ranges::any_of(params->ignored, same)) return {};
  return ReportIgnored(name, params);
}

void NoteThought(std::string_view thought, std::string path, RequestParams* params) {
  if (!thought.empty() && params->first_thought.empty()) params->first_thought = std::move(path);
}

void ShowTurns(RequestParams* params) {
  if (params->turns == nullptr) return;
  if (!params->instructions.is_null()) {
    params->turns->insert(params->turns->begin(),
                          json::object{{"role", "system"}, {"content", params->instructions}});
  }
  params->messages = params->turns.get();
}

}  // namespace vivace::server
