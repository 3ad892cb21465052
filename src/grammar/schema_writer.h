// Shapes (schema_shape.h) as rules of a grammar. Part of json_schema.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/code_points.h"
#include "grammar/ebnf.h"
#include "grammar/pattern.h"
#include "grammar/schema_shape.h"

namespace vivace::grammar {

// The rules every grammar of JSON begins with: ws, colon, comma, string, number, value, ...
std::string JsonRules();

// One character of a string, escapes and all, as a regular expression of xgrammar's.
std::string JsonCharacter();

// A constant as the one text it is written as.
std::string JsonText(const json::value& value);

class SchemaWriter {
 public:
  SchemaWriter(const json::value& root, std::string field)
      : root_(root), reader_(root, std::move(field)) {}

  Result<std::string> Write();

 private:
  // The name of a rule for values for which all of `schemas` hold; nothing: there is no such value.
  Result<std::optional<std::string>> Value(const Schemas& schemas);
  // As an expression.
  Result<std::optional<std::string>> Body(const Shape& shape);

  Result<std::optional<std::string>> Values(const Shape& shape);
  Result<std::optional<std::string>> Numbers(const Shape& shape);
  Result<std::optional<std::string>> Whole(const Shape& shape);
  Result<std::optional<std::string>> String(const Shape& shape);
  Result<std::optional<std::string>> StringOf(const Shape& shape, const Pattern& pattern);
  // A string that ends with a counted repeat of one character, as xgrammar's regular expression;
  // `before` it stands what the string begins with.
  std::string Counted(std::vector<std::string> before, const std::string& character, int64_t min,
                      int64_t max);
  Result<std::optional<std::string>> Array(const Shape& shape);
  Result<std::optional<std::string>> Object(const Shape& shape);

  // A member of an object: `key ":" value`.
  struct Member {
    std::string expression;
    bool required = false;
  };
  Result<std::optional<std::vector<Member>>> Members(const Shape& shape);
  // The members that no property names; nothing: there may be none.
  Result<std::optional<std::string>> OtherMember(const Shape& shape);
  Result<std::string> OtherKey(const Shape& shape);
  std::string MemberChain(const ObjectShape& object, const std::vector<Member>& members,
                          const std::optional<std::string>& other);

  const json::value& root_;
  SchemaReader reader_;
  EbnfWriter out_;
  struct Rule {
    std::optional<std::string> name;
    bool open = true;        // its body is being written
    bool used_open = false;  // and refers to itself
  };
  std::map<std::vector<const json::value*>, Rule> rules_;
  std::map<std::string, std::string> counted_;  // rules by what Counted writes
  int depth_ = 0;
};

}  // namespace vivace::grammar
