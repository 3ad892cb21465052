// The keywords of one schema object, worked into a shape. Part of schema_shape.h.
#pragma once

#include <string>
#include <string_view>

#include "grammar/schema_shape.h"

namespace vivace::grammar {

class KeywordReader {
 public:
  KeywordReader(const SchemaReader& reader, const SchemaRef& schema, Shape* shape)
      : reader_(reader),
        schema_(schema.schema->get_object()),
        where_(schema.where),
        shape_(*shape) {}

  // All keywords but $ref, allOf, anyOf and oneOf. A contradiction inside this one schema is an
  // error; one with the shape leaves the shape without a type or value.
  Status Read();

 private:
  using Reader = Status (KeywordReader::*)(const json::value&);
  struct Keyword {
    std::string_view name;
    Reader read;
    TypeBits about;  // the types it speaks of
  };
  static const Keyword kKeywords[];

  tl::unexpected<Error> Refuse(std::string_view keyword, const std::string& what) const {
    return reader_.Refuse(At(keyword), what);
  }
  std::string At(std::string_view keyword) const;
  Result<int64_t> Count(std::string_view keyword, const json::value& value) const;
  Result<ExactNumber> Number(std::string_view keyword, const json::value& value) const;
  Result<ExactNumber> Bound(std::string_view keyword, const json::value& value) const;
  Result<SchemaRef> Sub(std::string at, const json::value& value) const;

  Status Type(const json::value& value);
  Status Nullable(const json::value& value);
  Status Enum(const json::value& value);
  Status Const(const json::value& value);
  Status Minimum(const json::value& value);
  Status Maximum(const json::value& value);
  Status ExclusiveMinimum(const json::value& value);
  Status ExclusiveMaximum(const json::value& value);
  Status MultipleOf(const json::value& value);
  Status MinLength(const json::value& value);
  Status MaxLength(const json::value& value);
  Status PatternKeyword(const json::value& value);
  Status Format(const json::value& value);
  Status MinItems(const json::value& value);
  Status MaxItems(const json::value& value);
  Status MinProperties(const json::value& value);
  Status MaxProperties(const json::value& value);
  Status Required(const json::value& value);
  Status PropertyNames(const json::value& value);
  Status UniqueItems(const json::value& value);
  Status UnevaluatedItems(const json::value& value);
  Status UnevaluatedProperties(const json::value& value);
  Status Unevaluated(std::string_view keyword, const json::value& value, bool alone);
  Status PatternProperties(const json::object& list, bool alone);
  Status Objects();
  Status Arrays();
  Status CheckRanges() const;
  Status LowerBound(NumberBound bound);
  Status UpperBound(NumberBound bound);
  Status OneOf(std::vector<const json::value*> values);

  const SchemaReader& reader_;
  const json::object& schema_;
  const std::string& where_;
  Shape& shape_;
};

}  // namespace vivace::grammar
