#include "grammar/schema_shape.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json_members.h"
#include "base/limits.h"
#include "grammar/schema_keywords.h"

namespace vivace::grammar {
namespace {

constexpr int kDisjointDepth = 4;  // of members within members that a proof looks at
constexpr size_t kMostProofSteps = 1'000'000;
constexpr size_t kMembersPerNode = 64;  // of a shape that is handed on, for limits::kMaxSchemaNodes

const json::value kFalse(false);

// The part of a $ref behind "#", percent-decoded.
std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16).ptr == &text[i + 1] + 2) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// What a JSON pointer means in `root`; null: nothing. Written out, because boost's takes a
// reference token for an index where the standard does not.
const json::value* Find(const json::value& root, std::string_view pointer) {
  const json::value* at = &root;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    pointer.remove_prefix(1);
    const size_t end = std::min(pointer.find('/'), pointer.size());
    std::string token;
    for (size_t i = 0; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end) {
        token += pointer[++i] == '1' ? '/' : '~';
      } else {
        token += pointer[i];
      }
    }
    pointer.remove_prefix(end);
    if (const json::object* object = at->if_object()) {
      at = object->if_contains(token);
    } else if (const json::array* array = at->if_array()) {
      size_t index = 0;
      const auto read = std::from_chars(token.data(), token.data() + token.size(), index);
      const bool whole = read.ec == std::errc() && read.ptr == token.data() + token.size();
      at = whole ? array->if_contains(index) : nullptr;
    } else {
      at = nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

bool IsFalse(const json::value& schema) { return schema.is_bool() && !schema.get_bool(); }

bool SaysFalse(const json::object& schema, std::string_view keyword) {
  const json::value* value = schema.if_contains(keyword);
  return value != nullptr && IsFalse(*value);
}

// A shape that contradictions have left without any value.
bool Empty(const Shape& shape) {
  return shape.types == 0 || (shape.values && shape.values->empty());
}

bool RangesDisjoint(const Shape& a, const Shape& b) {
  const auto above = [](const Shape& x, const Shape& y) {
    if (!x.lower || !y.upper) return false;
    return x.lower->value > y.upper->value ||
           (x.lower->value == y.upper->value && (x.lower->strict || y.upper->strict));
  };
  return above(a, b) || above(b, a);
}

bool ClosedTo(const ObjectShape& object, const std::string& name) {
  const bool named =
      std::ranges::any_of(object.properties, [&](const auto& p) { return p.first == name; });
  return !named && object.additional && !object.pattern_property &&
         std::ranges::any_of(*object.additional, [](const auto& s) { return IsFalse(*s.schema); });
}

Schemas SchemasOf(const ObjectShape& object, const std::string& name) {
  for (const auto& [known, schemas] : object.properties) {
    if (known == name) return schemas;
  }
  return object.pattern_property ? Schemas{} : object.additional.value_or(Schemas{});
}

// The one value that schemas leave, where one of them says so itself.
const json::value* Pinned(const Schemas& schemas) {
  for (const SchemaRef& schema : schemas) {
    const json::object* object = schema.schema->if_object();
    if (object == nullptr) continue;
    if (const json::value* value = object->if_contains("const")) return value;
    const json::value* list = object->if_contains("enum");
    if (list != nullptr && list->is_array() && list->get_array().size() == 1) {
      return &list->get_array()[0];
    }
  }
  return nullptr;
}

bool PinnedApart(const Schemas& a, const Schemas& b) {
  const json::value *of_a = Pinned(a), *of_b = Pinned(b);
  return of_a != nullptr && of_b != nullptr && !SameJson(*of_a, *of_b);
}

bool CountsDisjoint(int64_t min_a, int64_t max_a, int64_t min_b, int64_t max_b) {
  return (max_a != kUnbounded && min_b > max_a) || (max_b != kUnbounded && min_a > max_b);
}

}  // namespace

const json::value* Said(const json::object& schema, std::string_view keyword) {
  const bool counts = keyword == "const" || keyword == "type";
  return counts ? schema.if_contains(keyword) : FindPresent(schema, keyword);
}

ExactNumber NumberOf(const json::value& value) {
  if (value.is_int64()) return static_cast<ExactNumber>(value.get_int64());
  if (value.is_uint64()) return static_cast<ExactNumber>(value.get_uint64());
  return value.get_double();
}

TypeBits TypeOf(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return kNull;
    case json::kind::bool_:
      return kBoolean;
    case json::kind::string:
      return kString;
    case json::kind::array:
      return kArray;
    case json::kind::object:
      return kObject;
    case json::kind::double_: {
      const double number = value.get_double();
      return number == static_cast<double>(static_cast<int64_t>(std::clamp(number, -9e18, 9e18)))
                 ? kInteger
                 : kFraction;
    }
    default:
      return kInteger;
  }
}

bool SameJson(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) {
    return a == b || NumberOf(a) == NumberOf(b);
  }
  return a == b;
}

bool Admits(const Shape& shape, const json::value& value) {
  if ((TypeOf(value) & shape.types) == 0) return false;
  if (value.is_number()) {
    const ExactNumber number = NumberOf(value);
    const bool low = !shape.lower || number > shape.lower->value ||
                     (number == shape.lower->value && !shape.lower->strict);
    const bool high = !shape.upper || number < shape.upper->value ||
                      (number == shape.upper->value && !shape.upper->strict);
    const bool multiple =
        !shape.whole_only ||
        (TypeOf(value) == kInteger && static_cast<int64_t>(number) % shape.multiple_of == 0);
    return low && high && multiple;
  }
  if (value.is_string()) {
    const std::string_view text = value.get_string();
    const auto length = static_cast<int64_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
    return length >= shape.min_length &&
           (shape.max_length == kUnbounded || length <= shape.max_length);
  }
  return true;
}

tl::unexpected<Error> SchemaReader::Refuse(const std::string& where,
                                           const std::string& what) const {
  return Fail(ErrorCode::kInvalidArgument, "schema_not_enforceable", field_, "schema at {}: {}",
              where.empty() ? "its root" : where, what);
}

Result<std::vector<Shape>> SchemaReader::Read(const Schemas& schemas) {
  Shapes shapes(1);
  if (!schemas.empty()) shapes[0].where = schemas[0].where;
  for (const SchemaRef& schema : schemas) {
    VIVACE_ASSIGN(shapes, ApplyAll(schema, std::move(shapes)));
  }
  return shapes;
}

Result<SchemaReader::Shapes> SchemaReader::ApplyAll(const SchemaRef& schema, Shapes shapes) {
  Shapes out;
  for (Shape& shape : shapes) {
    VIVACE_ASSIGN(Shapes more, Apply(schema, std::move(shape)));
    for (Shape& one : more) out.push_back(std::move(one));
    if (out.size() > limits::kMaxSchemaVariants) {
      return Refuse(schema.where, fmt::format("its alternatives multiply to more than {} kinds of "
                                              "value",
                                              limits::kMaxSchemaVariants));
    }
  }
  return out;
}

Result<SchemaReader::Shapes> SchemaReader::Apply(const SchemaRef& schema, Shape shape) {
  nodes_ += 1 + shape.weight() / kMembersPerNode;
  if (nodes_ > limits::kMaxSchemaNodes) {
    return Refuse(schema.where, fmt::format("the schema is too large: more than {} schemas are met "
                                            "while it is read",
                                            limits::kMaxSchemaNodes));
  }
  if (depth_ >= limits::kMaxSchemaDepth) {
    return Refuse(schema.where, fmt::format("more than {} schemas lead to each other by $ref, "
                                            "allOf, anyOf and oneOf",
                                            limits::kMaxSchemaDepth));
  }
  ++depth_;
  auto shapes = ApplyWithin(schema, std::move(shape));
  --depth_;
  return shapes;
}

Result<SchemaReader::Shapes> SchemaReader::ApplyWithin(const SchemaRef& schema, Shape shape) {
  if (schema.schema->is_bool()) {
    return IsFalse(*schema.schema) ? Shapes{} : Shapes{std::move(shape)};
  }
  if (!schema.schema->is_object()) {
    return Refuse(schema.where, "a schema is an object, true or false");
  }
  const json::object& object = schema.schema->get_object();
  VIVACE_RETURN_IF_ERROR(KeywordReader(*this, schema, &shape).Read());
  if (Empty(shape)) return Shapes{};
  Shapes shapes{std::move(shape)};
  if (const json::value* ref = Said(object, "$ref")) {
    VIVACE_ASSIGN(shapes, ApplyRef(schema, *ref, std::move(shapes)));
  }
  if (const json::value* all = Said(object, "allOf")) {
    if (!all->is_array() || all->get_array().empty()) {
      return Refuse(schema.where + "/allOf", "must be an array of at least one schema");
    }
    for (size_t i = 0; i < all->get_array().size(); ++i) {
      const SchemaRef sub{&all->get_array()[i], fmt::format("{}/allOf/{}", schema.where, i)};
      VIVACE_ASSIGN(shapes, ApplyAll(sub, std::move(shapes)));
    }
  }
  if (Said(object, "anyOf") != nullptr) {
    VIVACE_ASSIGN(shapes, ApplyOptions(schema, "anyOf", false, std::move(shapes)));
  }
  if (Said(object, "oneOf") != nullptr) {
    VIVACE_ASSIGN(shapes, ApplyOptions(schema, "oneOf", true, std::move(shapes)));
  }
  // All that names members or items has been read: where nothing opened the shape, it is shut now.
  for (Shape& one : shapes) {
    if (SaysFalse(object, "unevaluatedProperties") && !one.object.additional) {
      one.object.additional = {{&kFalse, schema.where + "/unevaluatedProperties"}};
    }
    if (SaysFalse(object, "unevaluatedItems") && !one.array.items) {
      one.array.items = {{&kFalse, schema.where + "/unevaluatedItems"}};
    }
  }
  return shapes;
}

Result<SchemaReader::Shapes> SchemaReader::ApplyRef(const SchemaRef& schema, const json::value& ref,
                                                    Shapes shapes) {
  const std::string where = schema.where + "/$ref";
  if (!ref.is_string()) return Refuse(where, "must be a string");
  const std::string_view uri = ref.get_string();
  if (!uri.starts_with('#') || (uri.size() > 1 && uri[1] != '/')) {
    return Refuse(where, fmt::format("'{}' is not in this schema; only references such as "
                                     "#/$defs/name are followed",
                                     uri));
  }
  const json::value* target = Find(root_, PercentDecoded(uri.substr(1)));
  if (target == nullptr) return Refuse(where, fmt::format("'{}' is not in the schema", uri));
  if (std::ranges::find(open_refs_, target) != open_refs_.end()) {
    return Refuse(where, fmt::format("'{}' refers to itself without anything in between", uri));
  }
  open_refs_.push_back(target);
  auto out = ApplyAll({target, std::string(uri.substr(1))}, std::move(shapes));
  open_refs_.pop_back();
  return out;
}

Result<SchemaReader::Shapes> SchemaReader::ApplyOptions(const SchemaRef& schema,
                                                        const char* keyword, bool one_only,
                                                        Shapes shapes) {
  const json::value& list = schema.schema->get_object().at(keyword);
  const std::string where = fmt::format("{}/{}", schema.where, keyword);
  if (!list.is_array() || list.get_array().empty()) {
    return Refuse(where, "must be an array of at least one schema");
  }
  std::vector<Shapes> options;
  size_t count = 0;
  for (size_t i = 0; i < list.get_array().size(); ++i) {
    const SchemaRef sub{&list.get_array()[i], fmt::format("{}/{}", where, i)};
    VIVACE_ASSIGN(Shapes option, ApplyAll(sub, shapes));
    count += option.size();
    if (count > limits::kMaxSchemaVariants) {
      return Refuse(where, fmt::format("its alternatives multiply to more than {} kinds of value",
                                       limits::kMaxSchemaVariants));
    }
    options.push_back(std::move(option));
  }
  Shapes out;
  for (size_t i = 0; i < options.size(); ++i) {
    for (size_t j = 0; one_only && !proving_ && j < i; ++j) {
      VIVACE_ASSIGN(const bool apart, Disjoint(options[i], options[j], 0));
      if (!apart) {
        return Refuse(where, fmt::format("a value could be of options {} and {} at once, which "
                                         "cannot be ruled out; use anyOf, or give each option a "
                                         "required member with a const of its own",
                                         j, i));
      }
    }
    out.insert(out.end(), options[i].begin(), options[i].end());
  }
  return out;
}

Result<bool> SchemaReader::Disjoint(const Shapes& a, const Shapes& b, int depth) {
  for (const Shape& x : a) {
    for (const Shape& y : b) {
      VIVACE_ASSIGN(const bool apart, Disjoint(x, y, depth));
      if (!apart) return false;
    }
  }
  return true;
}

Result<bool> SchemaReader::Disjoint(const Shape& a, const Shape& b, int depth) {
  const auto size = [](const auto& values) { return values ? values->size() : size_t{1}; };
  proof_steps_ += 1 + size(a.values) * size(b.values) / 16;
  if (proof_steps_ > kMostProofSteps) return false;
  const auto none_admitted = [](const Shape& values, const Shape& other) {
    return std::ranges::none_of(*values.values, [&](const json::value* value) {
      if (other.values && std::ranges::none_of(*other.values, [&](const json::value* v) {
            return SameJson(*value, *v);
          })) {
        return false;
      }
      return Admits(values, *value) && Admits(other, *value);
    });
  };
  if (a.values && none_admitted(a, b)) return true;
  if (b.values && none_admitted(b, a)) return true;
  TypeBits common = a.types & b.types;
  if (RangesDisjoint(a, b)) common &= ~(kInteger | kFraction);
  if (CountsDisjoint(a.min_length, a.max_length, b.min_length, b.max_length)) common &= ~kString;
  if (CountsDisjoint(a.array.min, a.array.max, b.array.min, b.array.max)) common &= ~kArray;
  if (common == 0) return true;
  if (common != kObject || depth >= kDisjointDepth) return false;
  return ObjectsDisjoint(a.object, b.object, depth);
}

// By one member: that one requires and the other rules out, or that can have no value in both. What
// is cheap to see comes first: members pinned to constants (the tag of a union), then those that
// differ by themselves, and at last by members of theirs.
Result<bool> SchemaReader::ObjectsDisjoint(const ObjectShape& a, const ObjectShape& b, int depth) {
  proof_steps_ += (a.required.size() + b.required.size()) *
                  (1 + (a.properties.size() + b.properties.size()) / 16);
  if (proof_steps_ > kMostProofSteps) return false;
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (std::ranges::any_of(one->required,
                            [&](const auto& name) { return ClosedTo(*other, name); })) {
      return true;
    }
  }
  std::vector<std::pair<Schemas, Schemas>> both;
  for (const std::string& name : a.required) {
    if (!b.required.contains(name)) continue;
    Schemas of_a = SchemasOf(a, name), of_b = SchemasOf(b, name);
    if (of_a.empty() || of_b.empty()) continue;
    if (PinnedApart(of_a, of_b)) return true;
    both.emplace_back(std::move(of_a), std::move(of_b));
  }
  for (const int next : {kDisjointDepth, depth + 1}) {
    for (const auto& [of_a, of_b] : both) {
      VIVACE_ASSIGN(const Shapes* shapes_a, ReadMember(of_a));
      VIVACE_ASSIGN(const Shapes* shapes_b, ReadMember(of_b));
      VIVACE_ASSIGN(const bool apart, Disjoint(*shapes_a, *shapes_b, next));
      if (apart) return true;
    }
    if (depth + 1 == kDisjointDepth) break;  // the same again
  }
  return false;
}

Result<const SchemaReader::Shapes*> SchemaReader::ReadMember(const Schemas& schemas) {
  std::vector<const json::value*> key;
  for (const SchemaRef& schema : schemas) key.push_back(schema.schema);
  if (const auto found = members_.find(key); found != members_.end()) return &found->second;
  // A member is something in between, and what it refers to may be open around it.
  std::vector<const json::value*> outer;
  outer.swap(open_refs_);
  const bool proving = std::exchange(proving_, true);
  auto shapes = Read(schemas);
  proving_ = proving;
  outer.swap(open_refs_);
  if (!shapes) return tl::unexpected<Error>(std::move(shapes.error()));
  return &members_.emplace(std::move(key), std::move(*shapes)).first->second;
}

}  // namespace vivace::grammar
