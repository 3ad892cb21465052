#include <algorithm>

#include "base/json_text.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "grammar/schema_writer.h"

namespace vivace::grammar {
namespace {

using Expression = std::optional<std::string>;

constexpr int64_t kMostMemberStates = 50'000;
constexpr size_t kMostNameLength = 200;

// Characters that a string holds unescaped.
const CodePoints kPlain = {{' ', '!'}, {'#', '['}, {']', 0xD7FF}, {0xE000, 0x10FFFF}};

std::u32string ToCodePoints(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const utf8::Decoded decoded = utf8::Decode(text, i);
    out += decoded.code_point;
    i += decoded.length;
  }
  return out;
}

// A rule for the rest of a key, up to its closing quote, that is none of `names`, which all begin
// with the same `depth` characters. No escapes, so that each key has one spelling.
std::string KeyRest(std::vector<std::u32string_view> names, size_t depth, EbnfWriter* out) {
  std::vector<std::string> options;
  CodePoints others = kPlain;
  bool taken = false;
  while (!names.empty()) {
    if (names.back().size() == depth) {
      taken = true;
      names.pop_back();
      continue;
    }
    const char32_t next = names.back()[depth];
    std::vector<std::u32string_view> same;
    std::erase_if(names, [&](std::u32string_view name) {
      if (name.size() == depth || name[depth] != next) return false;
      same.push_back(name);
      return true;
    });
    const CodePoints one = {{next, next}};
    if (kPlain.Intersect(one).empty()) continue;  // such a name has an escape
    others = others.Minus(one);
    options.push_back(Seq({one.ToClass(), KeyRest(std::move(same), depth + 1, out)}));
  }
  if (!taken) options.push_back(Literal("\""));
  options.push_back(Seq({others.ToClass(), "plain*", Literal("\"")}));
  return out->AddRule("key", Either(options));
}

}  // namespace

Result<Expression> SchemaWriter::MemberText(const std::string& name, const Schemas& schemas) {
  if (tags_ != nullptr) return Argument(name, schemas);
  VIVACE_ASSIGN(const Expression value, Value(schemas));
  if (!value) return Expression();
  std::string key;
  AppendJsonString(key, name);
  return Expression(Seq({Literal(key + ":"), "[ ]?", *value}));
}

// The properties, in order, and required names that are no property. Nothing: a required one can
// have no value.
Result<std::optional<std::vector<SchemaWriter::Member>>> SchemaWriter::Members(const Shape& shape) {
  const ObjectShape& object = shape.object;
  std::vector<Member> members;
  const auto add = [&](const std::string& name, const Schemas& schemas,
                       bool required) -> Result<bool> {
    VIVACE_ASSIGN(Expression member, MemberText(name, schemas));
    if (!member) return !required;
    members.push_back({std::move(*member), required});
    return true;
  };
  for (const auto& [name, schemas] : object.properties) {
    VIVACE_ASSIGN(const bool possible, add(name, schemas, object.required.contains(name)));
    if (!possible) {
      return reader_.Refuse(schemas.back().where, "is required, and no value can be valid");
    }
  }
  for (const std::string& name : object.required) {
    if (std::ranges::any_of(object.properties, [&](const auto& p) { return p.first == name; })) {
      continue;
    }
    if (object.pattern_property || object.names) {
      return reader_.Refuse(shape.where,
                            fmt::format("required: '{}' must be one of properties where "
                                        "keys are restricted by pattern",
                                        name));
    }
    VIVACE_ASSIGN(const bool possible, add(name, object.additional.value_or(Schemas{}), true));
    if (!possible) {
      return reader_.Refuse(shape.where, fmt::format("required: '{}' is neither in properties nor "
                                                     "allowed by additionalProperties",
                                                     name));
    }
  }
  return members;
}

// A key that is none of the properties' names.
Result<std::string> SchemaWriter::OtherKey(const Shape& shape) {
  const ObjectShape& object = shape.object;
  if (object.names) {
    if (!object.properties.empty() || !object.required.empty()) {
      return reader_.Refuse(shape.where,
                            "propertyNames cannot be enforced together with properties "
                            "and required");
    }
    static const json::value kText = {{"type", "string"}};
    Schemas names = *object.names;
    names.push_back({&kText, shape.where});
    VIVACE_ASSIGN(const Expression name, Value(names));
    if (!name) return reader_.Refuse(shape.where + "/propertyNames", "no name can be valid");
    return *name;
  }
  std::vector<std::u32string> names;
  for (const auto& [name, schemas] : object.properties) names.push_back(ToCodePoints(name));
  for (const std::string& name : object.required) names.push_back(ToCodePoints(name));
  if (names.empty()) return "string";
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (std::ranges::any_of(names, [](const auto& name) { return name.size() > kMostNameLength; })) {
    return reader_.Refuse(shape.where, fmt::format("names of over {} characters cannot be enforced "
                                                   "together with additionalProperties",
                                                   kMostNameLength));
  }
  const std::vector<std::u32string_view> views(names.begin(), names.end());
  return Seq({Literal("\""), KeyRest(views, 0, &out_)});
}

Result<Expression> SchemaWriter::OtherMember(const Shape& shape) {
  const ObjectShape& object = shape.object;
  if (tags_ != nullptr) return OtherArgument(shape);
  if (object.pattern_property) {
    const auto& [text, schemas] = *object.pattern_property;
    auto pattern = ParsePattern(text, reader_.field());
    if (!pattern) return reader_.Refuse(schemas[0].where, pattern.error().message);
    VIVACE_ASSIGN(const Expression value, Value(schemas));
    if (!value) return Expression();
    return Expression(Seq({Literal("\""), ToExpression(*pattern, Spelling::kJsonString),
                           Literal("\""), "colon", *value}));
  }
  if (object.closed && !object.additional) return Expression();
  VIVACE_ASSIGN(const Expression value, Value(object.additional.value_or(Schemas{})));
  if (!value) return Expression();
  VIVACE_ASSIGN(const std::string key, OtherKey(shape));
  return Expression(Seq({key, "colon", *value}));
}

// One rule for each (next property, members so far): counts stop at what still matters.
std::string SchemaWriter::MemberChain(const ObjectShape& object, const std::vector<Member>& members,
                                      const Expression& other) {
  const int64_t cap = object.max != kUnbounded ? object.max : std::max<int64_t>(object.min, 1);
  const size_t columns = static_cast<size_t>(cap) + 1;
  std::vector<std::string> names((members.size() + 1) * columns);
  const auto at = [&](size_t i, int64_t count) -> std::string& {
    return names[i * columns + static_cast<size_t>(std::min(count, cap))];
  };
  const std::string other_rule = other ? out_.AddRule("member", *other) : "";
  std::vector<std::string> member_rules;
  for (const Member& member : members) {
    member_rules.push_back(out_.AddRule("member", member.expression));
  }
  // From the end, so that what leads nowhere is known: an empty name is no way on.
  for (size_t i = members.size() + 1; i-- > 0;) {
    for (int64_t count = cap; count >= 0; --count) {
      const bool full = object.max != kUnbounded && count >= object.max;
      const char* between = tags_ == nullptr ? "comma" : "gap";
      const std::string comma = count == 0 ? std::string(kEmptyExpression) : between;
      std::vector<std::string> options;
      if (i == members.size()) {
        if (count >= object.min) options.emplace_back(kEmptyExpression);
        if (!other_rule.empty() && !full) {
          // Right-recursive: past the cap the state is its own successor.
          if (at(i, count).empty()) at(i, count) = out_.Reserve("members");
          const std::string& next = at(i, count + 1);
          if (!next.empty()) options.push_back(Seq({comma, other_rule, next}));
        }
      } else {
        const std::string& next = at(i + 1, count + 1);
        if (!full && !next.empty()) options.push_back(Seq({comma, member_rules[i], next}));
        if (!members[i].required && !at(i + 1, count).empty()) options.push_back(at(i + 1, count));
      }
      if (options.empty()) {
        at(i, count).clear();
        continue;
      }
      if (at(i, count).empty()) at(i, count) = out_.Reserve("members");
      out_.Define(at(i, count), Either(options));
    }
  }
  return at(0, 0);
}

Result<Expression> SchemaWriter::Object(const Shape& shape) {
  const ObjectShape& object = shape.object;
  if (object.names && !object.properties.empty()) {
    return reader_.Refuse(shape.where, "propertyNames cannot be enforced together with properties");
  }
  if (object.names && object.pattern_property) {
    return reader_.Refuse(shape.where,
                          "propertyNames cannot be enforced together with patternProperties; say "
                          "in the pattern which names may be");
  }
  const bool plain = object.properties.empty() && object.required.empty() && !object.additional &&
                     !object.pattern_property && !object.names && object.min == 0 &&
                     object.max == kUnbounded && !object.closed;
  if (plain && tags_ == nullptr) return Expression("object");
  VIVACE_ASSIGN(const auto members, Members(shape));
  VIVACE_ASSIGN(const Expression other, OtherMember(shape));
  const auto required = static_cast<int64_t>(object.required.size());
  ObjectShape counts = object;
  if (counts.min <= required) counts.min = 0;
  if (!other && counts.max >= static_cast<int64_t>(members->size())) counts.max = kUnbounded;
  if (other && counts.min > std::max<int64_t>(1, required)) {
    return reader_.Refuse(shape.where,
                          "minProperties over 1 cannot be enforced where members may "
                          "have any name: one could be written twice");
  }
  const int64_t columns = std::max<int64_t>({counts.min, counts.max, 1}) + 1;
  if (columns * (static_cast<int64_t>(members->size()) + 1) > kMostMemberStates) {
    return reader_.Refuse(shape.where,
                          "minProperties or maxProperties is too large to be enforced");
  }
  const std::string chain = MemberChain(counts, *members, other);
  if (chain.empty()) {
    return reader_.Refuse(shape.where,
                          "required, minProperties, maxProperties and the properties "
                          "leave no valid object");
  }
  if (tags_ != nullptr) return Expression(chain);
  return Expression(Seq({Literal("{"), "ws", chain, "ws", Literal("}")}));
}

}  // namespace vivace::grammar
