#include "server/openai/described_tools.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace vivace::server {
namespace {

namespace json = boost::json;

std::string_view RoleOf(const json::object& message) { return message.at("role").as_string(); }

std::string Description(const json::array& tools) {
  std::string text = "You can call these functions:\n";
  for (const json::value& tool : tools) text += json::serialize(tool.at("function")) + "\n";
  text +=
      "To call one, answer with nothing but one JSON object: "
      "{\"name\": <function name>, \"arguments\": <object of arguments>}. "
      "You are given its result then. If no call is needed, answer as usual.";
  return text;
}

// Puts `text` in front of a content or behind it, with an empty line between.
void Join(json::value* content, std::string_view text, bool front) {
  if (content->is_array()) {
    json::array& parts = content->get_array();
    json::value part = {{"type", "text"}, {"text", text}};
    parts.insert(front ? parts.begin() : parts.end(), std::move(part));
    return;
  }
  json::string& old = content->as_string();
  if (old.empty()) {
    old = text;
  } else if (front) {
    const std::string behind(old);
    old = text;
    old.append("\n\n").append(behind);
  } else {
    old.append("\n\n").append(text);  // in place: many may follow each other
  }
}

// The calls of an assistant's message as the description asks for them.
void TellCalls(json::object* message) {
  const json::value* calls = message->if_contains("tool_calls");
  if (calls == nullptr) return;
  std::string text;
  for (const json::value& call : calls->as_array()) {
    if (!text.empty()) text += '\n';
    text += json::serialize(call.at("function"));
  }
  Join(&message->at("content"), text, /*front=*/false);
  message->erase("tool_calls");
}

// A result as the user's words; results that follow each other are one message.
void TellResult(json::object message, json::array* out) {
  message["role"] = "user";
  message.erase("tool_call_id");
  json::value& content = message["content"];
  Join(&content, "Result of the call:", /*front=*/true);
  json::object* last = out->empty() ? nullptr : &out->back().as_object();
  const bool joins = last != nullptr && RoleOf(*last) == "user" && last->contains("results") &&
                     content.is_string() && last->at("content").is_string();
  if (joins) {
    Join(&last->at("content"), content.as_string(), /*front=*/false);
    return;
  }
  message["results"] = true;
  out->push_back(std::move(message));
}

void AddDescription(const std::string& text, bool system_role, json::array* messages) {
  if (system_role) {
    if (!messages->empty() && RoleOf(messages->front().as_object()) == "system") {
      Join(&messages->front().as_object()["content"], text, /*front=*/false);
    } else {
      messages->insert(messages->begin(), json::object{{"role", "system"}, {"content", text}});
    }
    return;
  }
  for (json::value& message : *messages) {
    if (RoleOf(message.as_object()) != "user") continue;
    Join(&message.as_object()["content"], text, /*front=*/true);
    return;
  }
}

}  // namespace

json::array WithDescribedTools(json::array messages, const json::array* tools, bool system_role) {
  json::array out;
  out.reserve(messages.size() + 1);
  for (json::value& message : messages) {
    json::object& object = message.as_object();
    if (RoleOf(object) == "tool") {
      TellResult(std::move(object), &out);
      continue;
    }
    TellCalls(&object);
    out.push_back(std::move(message));
  }
  for (json::value& message : out) message.as_object().erase("results");
  if (tools != nullptr) AddDescription(Description(*tools), system_role, &out);
  return out;
}

}  // namespace vivace::server
