#include "server/openai/messages.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/json_members.h"
#include "base/limits.h"
#include "server/json/strict_json.h"

namespace vivace::server {
namespace {

constexpr std::string_view kCopied[] = {"name", "tool_call_id", "reasoning_content", "reasoning",
                                        "thinking"};
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};

// Reads one message; `path` names it in errors.
class MessageReader {
 public:
  MessageReader(const json::object& message, size_t index)
      : message_(message), path_(fmt::format("messages[{}]", index)) {}

  Result<json::object> Read() {
    VIVACE_RETURN_IF_ERROR(ReadRole());
    VIVACE_RETURN_IF_ERROR(ReadContent());
    for (const std::string_view name : kCopied) {
      VIVACE_RETURN_IF_ERROR(CopyString(name));
    }
    ShareReasoning();
    VIVACE_RETURN_IF_ERROR(ReadToolCalls());
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> Wrong(std::string_view member, std::string_view rest) const {
    std::string field = fmt::format("{}.{}", path_, member);
    std::string message = fmt::format("`{}` {}", field, rest);
    return tl::unexpected<Error>(
        Error{ErrorCode::kInvalidArgument, "invalid_value", std::move(message), std::move(field)});
  }

  // Null counts as absent.
  const json::value* Find(std::string_view name) const { return FindPresent(message_, name); }

  Status ReadRole() {
    const json::value* role = Find("role");
    const bool known = role != nullptr && role->is_string() &&
                       std::find(std::begin(kRoles), std::end(kRoles),
                                 std::string_view(role->get_string())) != std::end(kRoles);
    if (!known) return Wrong("role", "must be system, developer, user, assistant or tool");
    assistant_ = role->get_string() == "assistant";
    out_["role"] = *role;
    return {};
  }

  Status ReadContent() {
    const json::value* content = Find("content");
    const json::value* refusal = Find("refusal");
    if (refusal != nullptr) return ReadRefusal(*refusal, content);
    if (content == nullptr) {
      if (!assistant_) return Wrong("content", "is required; only an assistant's can be null");
      out_["content"] = "";
      return {};
    }
    if (content->is_string()) {
      out_["content"] = *content;
      return {};
    }
    if (!content->is_array()) {
      return Wrong("content",
                   fmt::format("must be a string or a list of parts, not {}", KindName(*content)));
    }
    return ReadParts(content->get_array());
  }

  // What the assistant said instead of a content.
  Status ReadRefusal(const json::value& refusal, const json::value* content) {
    if (!assistant_) return Wrong("refusal", "belongs to messages of the assistant only");
    if (!refusal.is_string()) {
      return Wrong("refusal", fmt::format("must be a string, not {}", KindName(refusal)));
    }
    const bool said = content != nullptr && *content != "";
    if (said) return Wrong("refusal", "goes without content: it is what was said");
    out_["content"] = refusal;
    return {};
  }

  Status ReadParts(const json::array& parts) {
    json::array out;
    for (const json::value& part : parts) {
      const std::string path = fmt::format("content[{}]", out.size());
      const json::object* object = part.if_object();
      if (object == nullptr) {
        return Wrong(path, fmt::format("must be an object, not {}", KindName(part)));
      }
      const json::value* type = object->if_contains("type");
      if (type == nullptr || !type->is_string()) {
        return Wrong(path + ".type", "must be \"text\"; every part needs a type");
      }
      // An assistant's own refusal is what it said.
      const std::string_view kind = type->get_string();
      if (kind != "text" && !(assistant_ && kind == "refusal")) {
        return Wrong(path + ".type", "is not \"text\"; this model reads text only");
      }
      const json::value* part_text = object->if_contains(kind);
      if (part_text == nullptr || !part_text->is_string()) {
        return Wrong(fmt::format("{}.{}", path, kind),
                     fmt::format("must be a string; a {} part needs it", kind));
      }
      out.push_back({{"type", "text"}, {"text", *part_text}});
    }
    out_["content"] = std::move(out);
    return {};
  }

  Status CopyString(std::string_view name) {
    const json::value* value = Find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) {
      return Wrong(name, fmt::format("must be a string, not {}", KindName(*value)));
    }
    out_[name] = *value;
    return {};
  }

  // Clients write one name, templates read the other.
  void ShareReasoning() {
    const json::value* newer = out_.if_contains("reasoning");
    const json::value* older = out_.if_contains("reasoning_content");
    if (newer != nullptr && older == nullptr) out_["reasoning_content"] = json::value(*newer);
    if (older != nullptr && newer == nullptr) out_["reasoning"] = json::value(*older);
  }

  Status ReadToolCalls() {
    const json::value* calls = Find("tool_calls");
    if (calls == nullptr) return {};
    if (!assistant_) return Wrong("tool_calls", "belongs to messages of the assistant only");
    if (!calls->is_array()) {
      return Wrong("tool_calls", fmt::format("must be a list, not {}", KindName(*calls)));
    }
    if (calls->get_array().empty()) return {};
    if (calls->get_array().size() > limits::kMaxTools) {
      return Wrong("tool_calls", fmt::format("has {} calls; at most {} are allowed",
                                             calls->get_array().size(), limits::kMaxTools));
    }
    json::array out;
    for (const json::value& call : calls->get_array()) {
      VIVACE_ASSIGN(json::object read,
                    ReadToolCall(call, fmt::format("tool_calls[{}]", out.size())));
      out.push_back(std::move(read));
    }
    out_["tool_calls"] = std::move(out);
    return {};
  }

  Result<json::object> ReadToolCall(const json::value& call, const std::string& path) const {
    const json::object* object = call.if_object();
    const json::value* function = object != nullptr ? object->if_contains("function") : nullptr;
    if (function == nullptr || !function->is_object()) {
      return Wrong(path, "needs a \"function\", which is an object");
    }
    const json::value* name = function->get_object().if_contains("name");
    if (name == nullptr || !name->is_string()) {
      return Wrong(path + ".function.name", "must be a string");
    }
    json::object function_out;
    function_out["name"] = *name;
    VIVACE_ASSIGN(function_out["arguments"],
                  ReadArguments(function->get_object().if_contains("arguments"),
                                path + ".function.arguments"));
    json::object out;
    const json::value* id = object->if_contains("id");
    if (id != nullptr && id->is_string()) out["id"] = *id;
    out["type"] = "function";
    out["function"] = std::move(function_out);
    return out;
  }

  // A JSON text in OpenAI's API; templates want the object.
  Result<json::value> ReadArguments(const json::value* arguments, const std::string& path) const {
    if (arguments == nullptr || arguments->is_null()) return json::value(json::object());
    if (arguments->is_object()) return *arguments;
    if (!arguments->is_string()) return Wrong(path, "must be a string, the text of a JSON object");
    if (arguments->get_string().empty()) return json::value(json::object());
    // Models write a member twice, and their answers come back.
    auto parsed = ParseStrictJson(arguments->get_string(), "the text", MemberTwice::kLastWins);
    if (!parsed || !parsed->is_object()) {
      return Wrong(path, "is not the text of a JSON object");
    }
    return std::move(*parsed);
  }

  const json::object& message_;
  const std::string path_;
  bool assistant_ = false;
  json::object out_;
};

}  // namespace

Result<json::array> NormalizeMessages(const json::array& messages) {
  json::array out;
  out.reserve(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    const json::object* message = messages[i].if_object();
    if (message == nullptr) {
      const std::string field = fmt::format("messages[{}]", i);
      return Fail(ErrorCode::kInvalidArgument, "invalid_type", field,
                  "`{}` must be an object, not {}", field, KindName(messages[i]));
    }
    VIVACE_ASSIGN(json::object read, MessageReader(*message, i).Read());
    out.push_back(std::move(read));
  }
  return out;
}

}  // namespace vivace::server
