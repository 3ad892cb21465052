#include "grammar/schema_keywords.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "grammar/number_range.h"
#include "grammar/schema_formats.h"

namespace vivace::grammar {
namespace {

// Keywords that say nothing about which values are valid.
constexpr std::string_view kAnnotations[] = {"$anchor",
                                             "$comment",
                                             "$defs",
                                             "$id",
                                             "$schema",
                                             "$vocabulary",
                                             "contentEncoding",
                                             "contentMediaType",
                                             "contentSchema",
                                             "default",
                                             "definitions",
                                             "deprecated",
                                             "description",
                                             "discriminator",
                                             "enumDescriptions",
                                             "enumNames",
                                             "example",
                                             "examples",
                                             "externalDocs",
                                             "propertyOrdering",
                                             "readOnly",
                                             "strict",
                                             "title",
                                             "writeOnly",
                                             "xml"};

// Read by Objects and Arrays together, or by SchemaReader.
constexpr std::string_view kElsewhere[] = {
    "$ref",  "additionalItems", "additionalProperties", "allOf",       "anyOf",
    "items", "oneOf",           "patternProperties",    "prefixItems", "properties"};

// Known, and beyond what a grammar can hold to.
constexpr std::string_view kNotEnforced[] = {"$dynamicAnchor",
                                             "$dynamicRef",
                                             "$recursiveAnchor",
                                             "$recursiveRef",
                                             "contains",
                                             "dependencies",
                                             "dependentRequired",
                                             "dependentSchemas",
                                             "else",
                                             "if",
                                             "maxContains",
                                             "minContains",
                                             "not",
                                             "then"};

template <size_t N>
bool Has(const std::string_view (&names)[N], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

std::string Escaped(std::string_view member) {
  std::string out;
  for (const char c : member) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

TypeBits BitsOf(std::string_view name) {
  constexpr std::pair<std::string_view, TypeBits> kNames[] = {{"null", kNull},
                                                              {"boolean", kBoolean},
                                                              {"integer", kInteger},
                                                              {"string", kString},
                                                              {"array", kArray},
                                                              {"object", kObject},
                                                              {"number", kInteger | kFraction}};
  for (const auto& [known, bits] : kNames) {
    if (known == name) return bits;
  }
  return 0;
}

constexpr TypeBits kNumber = kInteger | kFraction;
constexpr size_t kMostCompared = 4'000'000;  // values of one enum with those of another

}  // namespace

const KeywordReader::Keyword KeywordReader::kKeywords[] = {
    {"type", &KeywordReader::Type, 0},
    {"nullable", &KeywordReader::Nullable, 0},
    {"enum", &KeywordReader::Enum, 0},
    {"const", &KeywordReader::Const, 0},
    {"minimum", &KeywordReader::Minimum, kNumber},
    {"maximum", &KeywordReader::Maximum, kNumber},
    {"exclusiveMinimum", &KeywordReader::ExclusiveMinimum, kNumber},
    {"exclusiveMaximum", &KeywordReader::ExclusiveMaximum, kNumber},
    {"multipleOf", &KeywordReader::MultipleOf, kNumber},
    {"minLength", &KeywordReader::MinLength, kString},
    {"maxLength", &KeywordReader::MaxLength, kString},
    {"pattern", &KeywordReader::PatternKeyword, kString},
    {"format", &KeywordReader::Format, 0},
    {"minItems", &KeywordReader::MinItems, kArray},
    {"maxItems", &KeywordReader::MaxItems, kArray},
    {"uniqueItems", &KeywordReader::UniqueItems, 0},
    {"unevaluatedItems", &KeywordReader::UnevaluatedItems, kArray},
    {"minProperties", &KeywordReader::MinProperties, kObject},
    {"maxProperties", &KeywordReader::MaxProperties, kObject},
    {"required", &KeywordReader::Required, kObject},
    {"propertyNames", &KeywordReader::PropertyNames, kObject},
    {"unevaluatedProperties", &KeywordReader::UnevaluatedProperties, kObject},
};

std::string KeywordReader::At(std::string_view keyword) const {
  return where_ + "/" + Escaped(keyword);
}

Status KeywordReader::Read() {
  for (const auto& member : schema_) {
    const std::string_view name = member.key();
    if (Said(schema_, name) == nullptr) continue;
    const auto* known = std::ranges::find(kKeywords, name, &Keyword::name);
    if (known != std::end(kKeywords) || Has(kElsewhere, name) || Has(kAnnotations, name) ||
        name.starts_with("x-")) {
      continue;
    }
    if (Has(kNotEnforced, name)) {
      return Refuse(name, "the keyword cannot be enforced while an answer is written");
    }
    return Refuse(name, "no keyword of JSON Schema that is known here");
  }
  for (const Keyword& keyword : kKeywords) {  // `type` first: nullable adds to it
    const json::value* value = Said(schema_, keyword.name);
    if (value == nullptr) continue;
    shape_.mentioned |= keyword.about;
    VIVACE_RETURN_IF_ERROR((this->*keyword.read)(*value));
  }
  VIVACE_RETURN_IF_ERROR(Objects());
  VIVACE_RETURN_IF_ERROR(Arrays());
  return CheckRanges();
}

Result<int64_t> KeywordReader::Count(std::string_view keyword, const json::value& value) const {
  double number = -1;
  if (value.is_number()) number = static_cast<double>(NumberOf(value));
  if (number < 0 || number != std::floor(number)) {
    return Refuse(keyword, "must be a whole number of at least 0");
  }
  return static_cast<int64_t>(std::min(number, 1e18));
}

Result<ExactNumber> KeywordReader::Number(std::string_view keyword,
                                          const json::value& value) const {
  if (!value.is_number()) return Refuse(keyword, "must be a number");
  return NumberOf(value);
}

// Refuses what may not be what was written: among numbers that are enforced, doubles so large that
// whole numbers were rounded to them.
Result<ExactNumber> KeywordReader::Bound(std::string_view keyword, const json::value& value) const {
  constexpr ExactNumber kFirstRounded = int64_t{1} << std::numeric_limits<double>::digits;
  VIVACE_ASSIGN(const ExactNumber bound, Number(keyword, value));
  if (value.is_double() && std::abs(bound) >= kFirstRounded && std::abs(bound) <= kMostWhole) {
    return Refuse(keyword, "from 2^53 on, must be written without a point or an exponent");
  }
  return bound;
}

Result<SchemaRef> KeywordReader::Sub(std::string at, const json::value& value) const {
  if (!value.is_object() && !value.is_bool()) {
    return reader_.Refuse(at, "a schema is an object, true or false");
  }
  return SchemaRef{&value, std::move(at)};
}

Status KeywordReader::Type(const json::value& value) {
  TypeBits bits = 0;
  const auto add = [&](const json::value& name) -> Status {
    const TypeBits one = name.is_string() ? BitsOf(name.get_string()) : TypeBits{0};
    if (one == 0) {
      return Refuse("type", fmt::format("{} is no type; one of null, boolean, integer, number, "
                                        "string, array, object is",
                                        json::serialize(name)));
    }
    bits |= one;
    return {};
  };
  if (value.is_array()) {
    if (value.get_array().empty()) return Refuse("type", "names no type");
    for (const json::value& name : value.get_array()) VIVACE_RETURN_IF_ERROR(add(name));
  } else {
    VIVACE_RETURN_IF_ERROR(add(value));
  }
  if (const json::value* nullable = Said(schema_, "nullable");
      nullable != nullptr && nullable->is_bool() && nullable->get_bool()) {
    bits |= kNull;
  }
  shape_.types &= bits;
  shape_.types_given = true;
  return {};
}

Status KeywordReader::Nullable(const json::value& value) {
  if (!value.is_bool()) return Refuse("nullable", "must be true or false");
  return {};
}

Status KeywordReader::OneOf(std::vector<const json::value*> values) {
  if (shape_.values) {
    if (shape_.values->size() * values.size() > kMostCompared) {
      return reader_.Refuse(where_, "enums are too long to be enforced together");
    }
    std::erase_if(*shape_.values, [&](const json::value* old) {
      return std::ranges::none_of(values, [&](const auto* v) { return SameJson(*old, *v); });
    });
  } else {
    shape_.values = std::move(values);
  }
  return {};
}

Status KeywordReader::Enum(const json::value& value) {
  if (!value.is_array()) return Refuse("enum", "must be an array");
  if (value.get_array().empty()) return Refuse("enum", "an empty enum allows no value");
  std::vector<const json::value*> values;
  for (const json::value& one : value.get_array()) {
    const bool twice = values.size() < 200 &&
                       std::ranges::any_of(values, [&](auto* v) { return SameJson(*v, one); });
    if (!twice) values.push_back(&one);
  }
  return OneOf(std::move(values));
}

Status KeywordReader::Const(const json::value& value) { return OneOf({&value}); }

Status KeywordReader::LowerBound(NumberBound bound) {
  auto& lower = shape_.lower;
  if (!lower || bound.value > lower->value || (bound.value == lower->value && bound.strict)) {
    lower = bound;
  }
  return {};
}

Status KeywordReader::UpperBound(NumberBound bound) {
  auto& upper = shape_.upper;
  if (!upper || bound.value < upper->value || (bound.value == upper->value && bound.strict)) {
    upper = bound;
  }
  return {};
}

Status KeywordReader::Minimum(const json::value& value) {
  VIVACE_ASSIGN(const ExactNumber bound, Bound("minimum", value));
  return LowerBound({bound, false});
}

Status KeywordReader::Maximum(const json::value& value) {
  VIVACE_ASSIGN(const ExactNumber bound, Bound("maximum", value));
  return UpperBound({bound, false});
}

Status KeywordReader::ExclusiveMinimum(const json::value& value) {
  VIVACE_ASSIGN(const ExactNumber bound, Bound("exclusiveMinimum", value));
  return LowerBound({bound, true});
}

Status KeywordReader::ExclusiveMaximum(const json::value& value) {
  VIVACE_ASSIGN(const ExactNumber bound, Bound("exclusiveMaximum", value));
  return UpperBound({bound, true});
}

Status KeywordReader::MultipleOf(const json::value& value) {
  VIVACE_ASSIGN(const ExactNumber factor, Number("multipleOf", value));
  if (factor <= 0) return Refuse("multipleOf", "must be greater than 0");
  constexpr int64_t kMost = 1'000'000'000;
  if (factor != std::floor(factor) || factor > kMost) {
    return Refuse("multipleOf", "can be enforced for whole numbers up to 1000000000 only");
  }
  const auto whole = static_cast<int64_t>(factor);
  int64_t a = shape_.multiple_of, b = whole;
  while (b != 0) std::tie(a, b) = std::pair(b, a % b);
  if (shape_.multiple_of / a > kMost / whole) {
    return Refuse("multipleOf", "together with another one it is too large");
  }
  shape_.multiple_of = shape_.multiple_of / a * whole;
  shape_.whole_only = true;
  return {};
}

Status KeywordReader::MinLength(const json::value& value) {
  VIVACE_ASSIGN(const int64_t count, Count("minLength", value));
  shape_.min_length = std::max(shape_.min_length, count);
  return {};
}

Status KeywordReader::MaxLength(const json::value& value) {
  VIVACE_ASSIGN(const int64_t count, Count("maxLength", value));
  auto& max = shape_.max_length;
  max = max == kUnbounded ? count : std::min(max, count);
  return {};
}

Status KeywordReader::PatternKeyword(const json::value& value) {
  if (!value.is_string()) return Refuse("pattern", "must be a string");
  const std::string pattern(value.get_string());
  if (shape_.pattern && *shape_.pattern != pattern) {
    return Refuse("pattern", "two patterns for one string cannot be enforced");
  }
  shape_.pattern = pattern;
  return {};
}

Status KeywordReader::Format(const json::value& value) {
  if (!value.is_string()) return Refuse("format", "must be a string");
  const std::string_view name = value.get_string();
  if (name == "int32" || name == "int64") {
    const double most = name == "int32" ? 2147483647.0 : 9e17;
    shape_.mentioned |= kInteger;
    VIVACE_RETURN_IF_ERROR(LowerBound({-most, false}));
    return UpperBound({most, false});
  }
  if (FormatIsAnnotation(name)) return {};
  if (FormatPattern(name).empty()) {
    return Refuse("format",
                  fmt::format("'{}' cannot be enforced; these can: {}", name, EnforcedFormats()));
  }
  if (shape_.format && *shape_.format != name) {
    return Refuse("format", "two formats for one string cannot be enforced");
  }
  shape_.mentioned |= kString;
  shape_.format = std::string(name);
  return {};
}

Status KeywordReader::MinItems(const json::value& value) {
  VIVACE_ASSIGN(const int64_t count, Count("minItems", value));
  shape_.array.min = std::max(shape_.array.min, count);
  return {};
}

Status KeywordReader::MaxItems(const json::value& value) {
  VIVACE_ASSIGN(const int64_t count, Count("maxItems", value));
  auto& max = shape_.array.max;
  max = max == kUnbounded ? count : std::min(max, count);
  return {};
}

Status KeywordReader::MinProperties(const json::value& value) {
  VIVACE_ASSIGN(const int64_t count, Count("minProperties", value));
  shape_.object.min = std::max(shape_.object.min, count);
  return {};
}

Status KeywordReader::MaxProperties(const json::value& value) {
  VIVACE_ASSIGN(const int64_t count, Count("maxProperties", value));
  auto& max = shape_.object.max;
  max = max == kUnbounded ? count : std::min(max, count);
  return {};
}

Status KeywordReader::Required(const json::value& value) {
  if (!value.is_array()) return Refuse("required", "must be an array of names");
  for (const json::value& name : value.get_array()) {
    if (!name.is_string()) return Refuse("required", "must be an array of names");
    shape_.object.required.insert(std::string(name.get_string()));
  }
  return {};
}

Status KeywordReader::PropertyNames(const json::value& value) {
  VIVACE_ASSIGN(SchemaRef sub, Sub(At("propertyNames"), value));
  if (!shape_.object.names) shape_.object.names.emplace();
  shape_.object.names->push_back(std::move(sub));
  return {};
}

Status KeywordReader::UniqueItems(const json::value& value) {
  if (!value.is_bool()) return Refuse("uniqueItems", "must be true or false");
  if (value.get_bool()) {
    return Refuse("uniqueItems", "the keyword cannot be enforced while an answer is written");
  }
  return {};
}

// `false` speaks of this schema and what it leads to; SchemaReader shuts the shape once all of
// that has been read. What other schemas named before cannot be told from it any more.
Status KeywordReader::Unevaluated(std::string_view keyword, const json::value& value, bool alone) {
  if (!value.is_bool()) {
    return Refuse(keyword, "can be enforced as true or false only, not as a schema");
  }
  if (!value.get_bool() && !alone) {
    return Refuse(keyword,
                  "cannot be enforced beside other schemas for the same value that name members "
                  "or items; put it where the allOf or $ref stands, not below");
  }
  return {};
}

Status KeywordReader::UnevaluatedItems(const json::value& value) {
  const ArrayShape& array = shape_.array;
  return Unevaluated("unevaluatedItems", value, array.prefix.empty() && !array.items);
}

Status KeywordReader::UnevaluatedProperties(const json::value& value) {
  const ObjectShape& object = shape_.object;
  return Unevaluated("unevaluatedProperties", value,
                     object.properties.empty() && !object.additional && !object.pattern_property);
}

// What the schemas before say of members that they do not name holds for those of the pattern too.
Status KeywordReader::PatternProperties(const json::object& list, bool alone) {
  ObjectShape& shape = shape_.object;
  if (!alone || list.size() > 1 || shape.pattern_property || !shape.properties.empty()) {
    return Refuse("patternProperties",
                  "can be enforced for one pattern, without properties and additionalProperties");
  }
  for (const auto& member : list) {
    const std::string key(member.key());
    VIVACE_ASSIGN(SchemaRef sub, Sub(At("patternProperties") + "/" + Escaped(key), member.value()));
    Schemas schemas{std::move(sub)};
    if (shape.additional) {
      schemas.insert(schemas.end(), shape.additional->begin(), shape.additional->end());
    }
    shape.pattern_property.emplace(key, std::move(schemas));
  }
  return {};
}

// The members' schemas of this object and of the shape so far hold together: a member that one
// side does not name falls under that side's additionalProperties.
Status KeywordReader::Objects() {
  ObjectShape& shape = shape_.object;
  const json::value* properties = Said(schema_, "properties");
  const json::value* additional = Said(schema_, "additionalProperties");
  const json::value* patterns = Said(schema_, "patternProperties");
  if (properties == nullptr && additional == nullptr && patterns == nullptr) return {};
  shape_.mentioned |= kObject;
  shape.closed |= properties != nullptr || patterns != nullptr;
  std::optional<SchemaRef> others;
  if (additional != nullptr) {
    VIVACE_ASSIGN(others, Sub(At("additionalProperties"), *additional));
  }
  const auto of = [&](std::string_view name) {
    return std::ranges::find(shape.properties, name, &std::pair<std::string, Schemas>::first);
  };
  const json::object* named = nullptr;
  if (properties != nullptr) {
    named = properties->if_object();
    if (named == nullptr) return Refuse("properties", "must be an object of schemas");
  }
  if (patterns != nullptr) {
    const json::object* list = patterns->if_object();
    if (list == nullptr) return Refuse("patternProperties", "must be an object of schemas");
    const bool alone =
        (named == nullptr || named->empty()) &&
        (additional == nullptr || (additional->is_bool() && !additional->get_bool()));
    if (!list->empty()) VIVACE_RETURN_IF_ERROR(PatternProperties(*list, alone));
  } else if (shape.pattern_property && named != nullptr && !named->empty()) {
    return Refuse("properties", "cannot be enforced together with patternProperties");
  }
  if (others) {
    for (auto& [name, schemas] : shape.properties) {
      if (named == nullptr || !named->contains(name)) schemas.push_back(*others);
    }
    const bool own_pattern = patterns != nullptr && !patterns->get_object().empty();
    if (shape.pattern_property && !own_pattern) shape.pattern_property->second.push_back(*others);
  }
  if (named != nullptr) {
    for (const auto& member : *named) {
      const std::string key(member.key());
      VIVACE_ASSIGN(SchemaRef sub, Sub(At("properties") + "/" + Escaped(key), member.value()));
      auto at = of(key);
      if (at == shape.properties.end()) {
        at = shape.properties.insert(at, {key, shape.additional.value_or(Schemas{})});
      }
      at->second.push_back(std::move(sub));
    }
  }
  if (others) {
    if (!shape.additional) shape.additional.emplace();
    shape.additional->push_back(std::move(*others));
  }
  return {};
}

Status KeywordReader::Arrays() {
  const json::value* items = Said(schema_, "items");
  const json::value* prefix = Said(schema_, "prefixItems");
  if (items != nullptr && items->is_array()) {  // drafts up to 2019-09
    if (prefix != nullptr) return Refuse("items", "must be a schema beside prefixItems");
    prefix = items;
    items = Said(schema_, "additionalItems");
  }
  if (items == nullptr && prefix == nullptr) return {};
  shape_.mentioned |= kArray;
  ArrayShape& shape = shape_.array;
  std::vector<SchemaRef> first;
  std::optional<SchemaRef> rest;
  if (prefix != nullptr) {
    if (!prefix->is_array()) return Refuse("prefixItems", "must be an array of schemas");
    for (const json::value& one : prefix->get_array()) {
      VIVACE_ASSIGN(SchemaRef sub, Sub(At("prefixItems") + fmt::format("/{}", first.size()), one));
      first.push_back(std::move(sub));
    }
  }
  if (items != nullptr) {
    VIVACE_ASSIGN(rest, Sub(At("items"), *items));
  }
  while (shape.prefix.size() < first.size()) {
    shape.prefix.push_back(shape.items.value_or(Schemas{}));
  }
  for (size_t i = 0; i < shape.prefix.size(); ++i) {
    if (i < first.size()) {
      shape.prefix[i].push_back(first[i]);
    } else if (rest) {
      shape.prefix[i].push_back(*rest);
    }
  }
  if (rest) {
    if (!shape.items) shape.items.emplace();
    shape.items->push_back(std::move(*rest));
  }
  return {};
}

Status KeywordReader::CheckRanges() const {
  const auto over = [](int64_t min, int64_t max) { return max != kUnbounded && min > max; };
  if (shape_.lower && shape_.upper &&
      (shape_.lower->value > shape_.upper->value ||
       (shape_.lower->value == shape_.upper->value &&
        (shape_.lower->strict || shape_.upper->strict)))) {
    return reader_.Refuse(where_, "no number lies between its minimum and its maximum");
  }
  if (over(shape_.min_length, shape_.max_length)) {
    return reader_.Refuse(where_, "minLength is greater than maxLength");
  }
  if (over(shape_.array.min, shape_.array.max)) {
    return reader_.Refuse(where_, "minItems is greater than maxItems");
  }
  if (over(shape_.object.min, shape_.object.max)) {
    return reader_.Refuse(where_, "minProperties is greater than maxProperties");
  }
  return {};
}

}  // namespace vivace::grammar
