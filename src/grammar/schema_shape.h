// A JSON schema read into shapes: what a value may be, with $ref, allOf, anyOf and oneOf worked in.
//
// A schema becomes a list of shapes, and a value is allowed if one of them allows it. Every keyword
// is enforced (it is in a shape), an annotation (kAnnotations), or refused by name with a JSON
// pointer to where it stands: nothing is passed over. Draft 2020-12, with the older spellings of
// arrays (`items` as a list) and OpenAPI's `nullable`; a keyword that is null is none (see Said).
//
// That no value has two options of a oneOf at once must be proven. In a proof a oneOf counts as an
// anyOf, which allows more, so that what is proven holds, and proofs do not lead to further ones.
//
// Cost: bounded by limits::kMaxSchemaNodes and kMaxSchemaVariants, a proof's by kMostProofSteps.
// Stack: schemas that hold for one value (of $ref, allOf, anyOf, oneOf and the proofs within) are
// kMaxSchemaDepth deep at most. A reader serves one schema, on one thread; the schema outlives it.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/ebnf.h"

namespace vivace::grammar {

namespace json = boost::json;

// JSON's types, as bits; a number that is whole is kInteger, one that is not kFraction.
enum TypeBit : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
};
using TypeBits = uint8_t;
inline constexpr TypeBits kAnyType = 127;

// Schemas that all hold for one value, each with a JSON pointer to it.
struct SchemaRef {
  const json::value* schema;
  std::string where;
};
using Schemas = std::vector<SchemaRef>;

// Numbers of JSON as they are compared: holds both a double and a whole number of 64 bits exactly.
using ExactNumber = long double;
static_assert(std::numeric_limits<ExactNumber>::digits >= 64);

struct NumberBound {
  ExactNumber value = 0;
  bool strict = false;
};

struct ObjectShape {
  std::vector<std::pair<std::string, Schemas>> properties;  // in the order of the schema
  std::set<std::string> required;
  std::optional<Schemas> additional;  // absent: not said
  std::optional<std::pair<std::string, Schemas>> pattern_property;
  std::optional<Schemas> names;
  int64_t min = 0, max = kUnbounded;
  bool closed = false;  // properties were given: no others, unless `additional` says so
};

struct ArrayShape {
  std::vector<Schemas> prefix;
  std::optional<Schemas> items;  // absent: not said
  int64_t min = 0, max = kUnbounded;
};

struct Shape {
  TypeBits types = kAnyType;
  TypeBits mentioned = 0;  // the types its keywords speak of
  bool types_given = false;
  std::optional<std::vector<const json::value*>> values;  // enum and const
  std::optional<NumberBound> lower, upper;
  int64_t multiple_of = 1;
  bool whole_only = false;  // multipleOf was given
  std::optional<std::string> pattern, format;
  int64_t min_length = 0, max_length = kUnbounded;
  ArrayShape array;
  ObjectShape object;
  std::string where;  // for errors about the whole

  // What it costs to copy, in members.
  size_t weight() const {
    return object.properties.size() + object.required.size() + array.prefix.size() +
           (values ? values->size() / 8 : 0);
  }

  // The types it means: those it names, or where it names none, those its keywords speak of.
  TypeBits meant() const { return types_given || mentioned == 0 ? types : types & mentioned; }
};

class SchemaReader {
 public:
  // `field` is the request's member, for errors.
  SchemaReader(const json::value& root, std::string field)
      : root_(root), field_(std::move(field)) {}

  // The shapes of a value for which all of `schemas` hold; none: no value does.
  Result<std::vector<Shape>> Read(const Schemas& schemas);

  tl::unexpected<Error> Refuse(const std::string& where, const std::string& what) const;

  const std::string& field() const { return field_; }

 private:
  friend class KeywordReader;
  using Shapes = std::vector<Shape>;

  Result<Shapes> Apply(const SchemaRef& schema, Shape shape);
  Result<Shapes> ApplyWithin(const SchemaRef& schema, Shape shape);
  Result<Shapes> ApplyAll(const SchemaRef& schema, Shapes shapes);
  Result<Shapes> ApplyRef(const SchemaRef& schema, const json::value& ref, Shapes shapes);
  Result<Shapes> ApplyOptions(const SchemaRef& schema, const char* keyword, bool one_only,
                              Shapes shapes);
  // Whether it is proven that no value has a shape of both.
  Result<bool> Disjoint(const Shapes& a, const Shapes& b, int depth);
  Result<bool> Disjoint(const Shape& a, const Shape& b, int depth);
  Result<bool> ObjectsDisjoint(const ObjectShape& a, const ObjectShape& b, int depth);
  // The shapes of a member, for a proof.
  Result<const Shapes*> ReadMember(const Schemas& schemas);

  const json::value& root_;
  std::string field_;
  size_t nodes_ = 0;
  size_t proof_steps_ = 0;
  int depth_ = 0;  // of Apply within Apply
  bool proving_ = false;
  std::vector<const json::value*> open_refs_;  // without a member or item in between
  std::map<std::vector<const json::value*>, Shapes> members_;  // that proofs have read
};

// What a schema says by a keyword; null: nothing, for null is as if it were left out. But a const
// may be null, and a type of null was hardly meant to allow anything.
const json::value* Said(const json::object& schema, std::string_view keyword);

// Which bits a JSON value has.
TypeBits TypeOf(const json::value& value);

// Whether two JSON values are the same as JSON Schema compares them (1 is 1.0).
bool SameJson(const json::value& a, const json::value& b);

// A value within a shape's type, range, lengths and values; a pattern, format or members are not
// looked at.
bool Admits(const Shape& shape, const json::value& value);

ExactNumber NumberOf(const json::value& value);  // of a number

}  // namespace vivace::grammar
