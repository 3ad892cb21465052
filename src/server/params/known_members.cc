#include "server/params/known_members.h"

#include <algorithm>

#include "server/params/conversation.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

constexpr KnownMember StringMember(std::string_view name) { return {name, MemberType::kString}; }
constexpr KnownMember BoolMember(std::string_view name) { return {name, MemberType::kBool}; }

constexpr KnownMember kPartShape[] = {{"type"}, {"text"}, {"refusal"}};
constexpr KnownMember kCalledFunctionShape[] = {{"name"}, {"arguments"}};
// Clients send the index of a stream's call back with it.
constexpr KnownMember kToolCallShape[] = {StringMember("id"),
                                          StringMember("type"),
                                          {"index"},
                                          {"function", MemberType::kAny, kCalledFunctionShape}};
constexpr KnownMember kMessageShape[] = {{"role"},
                                         {"content", MemberType::kAny, kPartShape},
                                         {"refusal"},
                                         {"name"},
                                         {"tool_call_id"},
                                         {"reasoning_content"},
                                         {"reasoning"},
                                         {"thinking"},
                                         {"tool_calls", MemberType::kAny, kToolCallShape}};

// Some templates tell what a function returns, as "return" or "response".
constexpr KnownMember kFunctionShape[] = {{"name"},   {"description"}, {"parameters"},
                                          {"strict"}, {"return"},      {"response"}};
constexpr KnownMember kToolShape[] = {{"type"}, {"function", MemberType::kAny, kFunctionShape}};
constexpr KnownMember kFlatToolShape[] = {{"type"},   {"name"},   {"description"}, {"parameters"},
                                          {"strict"}, {"return"}, {"response"}};

constexpr KnownMember kNameShape[] = {{"name"}};
constexpr KnownMember kNamedToolShape[] = {{"type"}, {"function", MemberType::kAny, kNameShape}};
constexpr KnownMember kAllowedToolsShape[] = {{"mode"},
                                              {"tools", MemberType::kAny, kNamedToolShape}};
constexpr KnownMember kToolChoiceShape[] = {
    {"type"},
    {"function", MemberType::kAny, kNameShape},
    {"allowed_tools", MemberType::kAny, kAllowedToolsShape}};
constexpr KnownMember kFlatNamedToolShape[] = {{"type"}, {"name"}};
constexpr KnownMember kFlatToolChoiceShape[] = {
    {"type"}, {"name"}, {"mode"}, {"tools", MemberType::kAny, kFlatNamedToolShape}};

constexpr KnownMember kJsonSchemaShape[] = {
    StringMember("name"), StringMember("description"), {"schema"}, BoolMember("strict")};
// Also the schema's own members where it has no object of its own, and a structural tag's.
constexpr KnownMember kFormatShape[] = {{"type"},
                                        {"json_schema", MemberType::kAny, kJsonSchemaShape},
                                        StringMember("name"),
                                        StringMember("description"),
                                        {"schema"},
                                        BoolMember("strict"),
                                        {"structures"},
                                        {"triggers"},
                                        {"format"}};
constexpr KnownMember kTextShape[] = {{"format", MemberType::kAny, kFormatShape}};
constexpr KnownMember kSchemaFormatShape[] = {{"type"}, {"schema"}};
constexpr KnownMember kOutputConfigShape[] = {{"format", MemberType::kAny, kSchemaFormatShape},
                                              {"effort"}};

Status CheckType(const json::value& value, const std::string& path, MemberType type) {
  if (type == MemberType::kString && !value.is_string()) return WrongType(path, "a string", value);
  if (type == MemberType::kBool && !value.is_bool()) return WrongType(path, "a boolean", value);
  return {};
}

const KnownMember* FindMember(KnownMembers members, std::string_view name) {
  const auto found = std::ranges::find(members, name, &KnownMember::name);
  return found == members.end() ? nullptr : &*found;
}

Status CheckObject(const json::object& object, const std::string& path, KnownMembers members,
                   RequestParams* params) {
  for (const auto& [name, value] : object) {
    const KnownMember* known = FindMember(members, name);
    if (value.is_null() || (known == nullptr && IsEmptyNote(name, value))) continue;
    if (known != nullptr && known->type == MemberType::kAny && known->inner.empty()) continue;
    const std::string member = fmt::format("{}.{}", path, std::string_view(name));
    if (known == nullptr) {
      VIVACE_RETURN_IF_ERROR(ReportOnce(member, params));
      continue;
    }
    VIVACE_RETURN_IF_ERROR(CheckType(value, member, known->type));
    if (known->inner.empty()) continue;
    VIVACE_RETURN_IF_ERROR(CheckMembers(value, member, known->inner, params));
  }
  return {};
}

}  // namespace

const KnownMembers kChatMessageMembers = kMessageShape;
const KnownMembers kChatToolMembers = kToolShape;
const KnownMembers kChatToolChoiceMembers = kToolChoiceShape;
const KnownMembers kFlatToolMembers = kFlatToolShape;
const KnownMembers kFlatToolChoiceMembers = kFlatToolChoiceShape;
const KnownMembers kResponseFormatMembers = kFormatShape;
const KnownMembers kTextMembers = kTextShape;
const KnownMembers kOutputConfigMembers = kOutputConfigShape;

Status CheckMembers(const json::value& value, const std::string& path, KnownMembers members,
                    RequestParams* params) {
  if (const auto* object = value.if_object()) return CheckObject(*object, path, members, params);
  const auto* list = value.if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* object = (*list)[i].if_object();
    if (object == nullptr) continue;  // its reader refuses it
    VIVACE_RETURN_IF_ERROR(CheckObject(*object, fmt::format("{}[{}]", path, i), members, params));
  }
  return {};
}

json::value OnlyKnown(const json::value& value, KnownMembers members) {
  if (members.empty()) return value;
  if (const auto* list = value.if_array()) {
    json::array out;
    out.reserve(list->size());
    for (const json::value& item : *list) out.push_back(OnlyKnown(item, members));
    return out;
  }
  const auto* object = value.if_object();
  if (object == nullptr) return value;
  json::object out;
  for (const auto& [name, inner] : *object) {
    const KnownMember* known = FindMember(members, name);
    if (known != nullptr) out[name] = OnlyKnown(inner, known->inner);
  }
  return out;
}

}  // namespace vivace::server
