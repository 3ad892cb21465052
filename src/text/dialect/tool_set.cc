#include "text/dialect/tool_set.h"

#include <algorithm>
#include <iterator>

#include "base/json_members.h"
#include "base/limits.h"

namespace vivace::dialect {
namespace {

namespace json = boost::json;

constexpr int kMaxReferences = 8;  // $ref and anyOf inside each other

unsigned KindNamed(const json::value& name) {
  struct Row {
    std::string_view name;
    unsigned kind;
  };
  constexpr Row kRows[] = {{"null", kNullKind},      {"boolean", kBoolKind},
                           {"integer", kNumberKind}, {"number", kNumberKind},
                           {"string", kStringKind},  {"array", kArrayKind},
                           {"object", kObjectKind}};
  if (!name.is_string()) return kAnyKind;
  const std::string_view text = name.get_string();
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.name == text; });
  return row == std::end(kRows) ? unsigned{kAnyKind} : row->kind;
}

// "#/a/b" within `root`; null for any other reference.
const json::value* Resolve(const json::value& root, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  boost::system::error_code error;
  return root.find_pointer(reference.substr(1), error);
}

unsigned KindsOf(const json::value& schema, const json::value& root, int depth);

template <typename Kinds>
unsigned Union(const json::value& list, Kinds kinds) {
  if (!list.is_array() || list.get_array().empty()) return kAnyKind;
  unsigned all = 0;
  for (const json::value& item : list.get_array()) all |= kinds(item);
  return all;
}

unsigned KindsOf(const json::value& schema, const json::value& root, int depth) {
  const json::object* object = schema.if_object();
  if (object == nullptr || depth > kMaxReferences) return kAnyKind;
  if (const json::value* value = object->if_contains("const")) return KindOf(*value);
  if (const json::value* values = FindPresent(*object, "enum")) return Union(*values, KindOf);
  if (const json::value* type = FindPresent(*object, "type")) {
    return type->is_array() ? Union(*type, KindNamed) : KindNamed(*type);
  }
  const json::value* reference = FindPresent(*object, "$ref");
  if (reference != nullptr && reference->is_string()) {
    const json::value* target = Resolve(root, reference->get_string());
    return target == nullptr ? unsigned{kAnyKind} : KindsOf(*target, root, depth + 1);
  }
  for (const std::string_view name : {"anyOf", "oneOf"}) {
    const json::value* list = FindPresent(*object, name);
    if (list == nullptr) continue;
    return Union(*list, [&](const json::value& item) { return KindsOf(item, root, depth + 1); });
  }
  return kAnyKind;
}

// The schema of a tool's argument; null if there is none.
const json::value* FindMember(const Tool* tool, std::string_view key) {
  const json::object* schema = tool == nullptr ? nullptr : tool->parameters.if_object();
  const json::value* properties = schema == nullptr ? nullptr : schema->if_contains("properties");
  const json::object* members = properties == nullptr ? nullptr : properties->if_object();
  return members == nullptr ? nullptr : members->if_contains(key);
}

}  // namespace

unsigned KindOf(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return kNullKind;
    case json::kind::bool_:
      return kBoolKind;
    case json::kind::string:
      return kStringKind;
    case json::kind::array:
      return kArrayKind;
    case json::kind::object:
      return kObjectKind;
    default:
      return kNumberKind;
  }
}

const Tool* ToolSet::Find(std::string_view name) const {
  const auto tool =
      std::find_if(tools.begin(), tools.end(), [&](const Tool& t) { return t.name == name; });
  return tool == tools.end() ? nullptr : &*tool;
}

unsigned ArgumentKinds(const Tool* tool, std::string_view key) {
  const json::value* member = FindMember(tool, key);
  return member == nullptr ? unsigned{kStringKind} : KindsOf(*member, tool->parameters, 0);
}

bool HasListedValues(const Tool* tool, std::string_view key) {
  const json::value* member = FindMember(tool, key);
  const json::object* schema = member == nullptr ? nullptr : member->if_object();
  return schema != nullptr &&
         (FindPresent(*schema, "enum") != nullptr || schema->contains("const"));
}

bool IsCallName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= limits::kMaxToolNameBytes &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace vivace::dialect
