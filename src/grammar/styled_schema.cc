#include "grammar/styled_schema.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/json_members.h"
#include "grammar/schema_shape.h"

namespace vivace::grammar {
namespace {

namespace json = boost::json;

// Keywords that the converter holds to, by the one that decides how it reads a schema.
struct Held {
  std::string_view deciding;
  std::string_view beside[13];
};
constexpr Held kHeld[] = {
    {"$ref", {}},
    {"const", {"type"}},
    {"enum", {"type"}},
    {"anyOf", {}},
    {"oneOf", {}},
    {"allOf", {}},
    {"type",
     {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format",
      "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
      "maxItems"}},
    {"properties", {"required", "additionalProperties"}},
    {"items", {"prefixItems", "minItems", "maxItems"}},
};

// Those that say what a value must be, of all that SchemaToEbnf takes.
constexpr std::string_view kAsserting[] = {"$ref",
                                           "additionalItems",
                                           "additionalProperties",
                                           "allOf",
                                           "anyOf",
                                           "const",
                                           "enum",
                                           "exclusiveMaximum",
                                           "exclusiveMinimum",
                                           "format",
                                           "items",
                                           "maxItems",
                                           "maxLength",
                                           "maxProperties",
                                           "maximum",
                                           "minItems",
                                           "minLength",
                                           "minProperties",
                                           "minimum",
                                           "multipleOf",
                                           "nullable",
                                           "oneOf",
                                           "pattern",
                                           "patternProperties",
                                           "prefixItems",
                                           "properties",
                                           "propertyNames",
                                           "required",
                                           "type",
                                           "unevaluatedItems",
                                           "unevaluatedProperties"};

template <typename Names>
bool Has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

// The keyword that decides how the converter reads a schema; null: none.
const Held* DecidingOf(const json::object& schema) {
  const auto* held =
      std::ranges::find_if(kHeld, [&](const Held& one) { return schema.contains(one.deciding); });
  return held == std::end(kHeld) ? nullptr : held;
}

bool Holds(const Held* held, std::string_view name) {
  return held != nullptr && (name == held->deciding || Has(held->beside, name));
}

class Fitter {
 public:
  Fitter(std::string_view style, const std::string& field) : style_(style), field_(field) {}

  Status Fit(json::value* schema, const std::string& where) const {
    json::object* object = schema->if_object();
    if (object == nullptr) return {};
    KeepMembers(object, [object](std::string_view name, const json::value&) {
      return Said(*object, name) != nullptr;
    });
    VIVACE_RETURN_IF_ERROR(CheckKeywords(*object, where));
    VIVACE_RETURN_IF_ERROR(CheckValues(*object, where));
    VIVACE_RETURN_IF_ERROR(FitMembers(object, where));
    for (auto& member : *object) {
      const std::string at = where + "/" + std::string(member.key());
      json::value& value = member.value();
      if (Has(kNamed, member.key()) && value.is_object()) {
        for (auto& one : value.get_object()) {
          VIVACE_RETURN_IF_ERROR(Fit(&one.value(), at + "/" + std::string(one.key())));
        }
      } else if (Has(kListed, member.key()) && value.is_array()) {
        for (size_t i = 0; i < value.get_array().size(); ++i) {
          VIVACE_RETURN_IF_ERROR(Fit(&value.get_array()[i], fmt::format("{}/{}", at, i)));
        }
      } else if (Has(kSingle, member.key())) {
        VIVACE_RETURN_IF_ERROR(Fit(&value, at));
      }
    }
    return {};
  }

 private:
  static constexpr std::string_view kNamed[] = {"properties", "$defs", "definitions"};
  static constexpr std::string_view kListed[] = {"anyOf", "oneOf", "allOf", "prefixItems"};
  static constexpr std::string_view kSingle[] = {"items", "additionalProperties"};

  tl::unexpected<Error> Refuse(const std::string& where, const std::string& what) const {
    return Fail(ErrorCode::kInvalidArgument, "schema_not_enforceable", field_,
                "schema at {}: {} in calls as this model writes them ({}); leave it out, or ask "
                "for the call without strict and tool_choice",
                where.empty() ? "its root" : where, what, style_);
  }

  Status CheckKeywords(const json::object& schema, const std::string& where) const {
    const Held* held = DecidingOf(schema);
    for (const auto& member : schema) {
      const std::string_view name = member.key();
      if (!Has(kAsserting, name)) continue;
      if (name == "multipleOf" && member.value() == 1) continue;
      const bool shut = name == "nullable" && member.value() == false;
      if (!Holds(held, name) && !shut)
        return Refuse(where + "/" + std::string(name), "cannot be enforced");
    }
    return {};
  }

  Status CheckValues(const json::object& schema, const std::string& where) const {
    if (schema.contains("pattern") && schema.contains("format")) {
      return Refuse(where + "/format", "cannot be enforced together with pattern");
    }
    if (const json::value* items = schema.if_contains("items");
        items != nullptr && items->is_array()) {
      return Refuse(where + "/items", "cannot be enforced as a list; prefixItems can");
    }
    if (const json::value* all = schema.if_contains("allOf");
        all != nullptr && (!all->is_array() || all->get_array().size() != 1)) {
      return Refuse(where + "/allOf", "cannot be enforced with more than one schema");
    }
    const json::value* type = schema.if_contains("type");
    const json::value* list = schema.if_contains("enum");
    const json::value* constant = schema.if_contains("const");
    if (type == nullptr || (list == nullptr && constant == nullptr)) return {};
    json::array values;
    if (list != nullptr && list->is_array()) values = list->get_array();
    if (constant != nullptr) values.push_back(*constant);
    for (const json::value& value : values) {
      const json::object sole = {{"type", *type}, {"const", value}};
      const json::value both(sole);
      auto shapes = SchemaReader(both, field_).Read({{&both, where}});
      if (!shapes || shapes->empty() || !Admits(shapes->front(), value)) {
        return Refuse(where + "/type",
                      "that rules out some of the listed values cannot be enforced");
      }
    }
    return {};
  }

  // Members: all that are required must be named, and no others may come beside named ones, which
  // the converter would let come twice.
  Status FitMembers(json::object* schema, const std::string& where) const {
    const json::value* named = schema->if_contains("properties");
    const bool some = named != nullptr && named->is_object() && !named->get_object().empty();
    // What is in no use has not been read: nothing is sure of it.
    const json::value* required = schema->if_contains("required");
    if (required != nullptr && required->is_array()) {
      for (const json::value& name : required->get_array()) {
        if (!name.is_string() || (some && named->get_object().contains(name.get_string())))
          continue;
        return Refuse(where + "/required", fmt::format("'{}', which is none of properties, cannot "
                                                       "be enforced",
                                                       std::string_view(name.get_string())));
      }
    }
    if (some) (*schema)["additionalProperties"] = false;
    return {};
  }

  std::string_view style_;
  const std::string& field_;
};

// Leaves out a type of the whole that would not be held to, where the rest says it as well.
void DropSaidType(const std::string& field, json::value* schema) {
  const json::object* whole = schema->if_object();
  if (whole == nullptr || !whole->contains("type") || Holds(DecidingOf(*whole), "type")) return;
  json::value rest = *schema;
  rest.get_object().erase("type");
  const auto both = SchemaReader(*schema, field).Read({{schema, ""}});
  const auto alone = SchemaReader(rest, field).Read({{&rest, ""}});
  const auto types = [](const std::vector<Shape>& shapes) {
    TypeBits all = 0;
    for (const Shape& shape : shapes) all |= shape.meant();
    return all;
  };
  if (both && alone && types(*both) == types(*alone)) *schema = std::move(rest);
}

}  // namespace

Status FitToStyle(std::string_view style, const std::string& field, json::value* schema) {
  DropSaidType(field, schema);
  return Fitter(style, field).Fit(schema, "");
}

}  // namespace vivace::grammar
