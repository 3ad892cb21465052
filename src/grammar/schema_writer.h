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
#include "text/dialect/tool_set.h"

namespace vivace::grammar {

// The rules every grammar of JSON begins with: ws, colon, comma, string, number, value, ...
std::string JsonRules();

// One character of a string, escapes and all, as a regular expression of xgrammar's.
std::string JsonCharacter();

// How the arguments of a call stand in tags: schema_tags.cc.
struct TagStyle {
  std::string_view name, key_begin, key_end, value_begin, value_end;
  std::string_view says_text, says_json;  // behind the key: what the value is; empty: nothing does
  bool breaks = false;                    // a text stands between line breaks
  bool keeps_breaks = false;              // those beside a text are part of it
};
const TagStyle* FindTagStyle(std::string_view name);

// A constant as the one text it is written as.
std::string JsonText(const json::value& value);

class SchemaWriter {
 public:
  SchemaWriter(const json::value& root, std::string field)
      : root_(root), reader_(root, std::move(field)) {}

  Result<std::string> Write();
  // The members of an object in tags.
  Result<std::string> WriteTags(const TagStyle& style);

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
  // The pattern with the shape's lengths; nothing: no text has both.
  Result<std::optional<Pattern>> WithLengths(const Shape& shape, Pattern pattern) const;
  // What the shape's pattern or format says; nothing: it has neither.
  Result<std::optional<Pattern>> PatternOf(const Shape& shape) const;
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
  // `key ":" value`; nothing: there is no such value.
  Result<std::optional<std::string>> MemberText(const std::string& name, const Schemas& schemas);
  std::string MemberChain(const ObjectShape& object, const std::vector<Member>& members,
                          const std::optional<std::string>& other);

  // ---- schema_tags.cc ----
  Result<std::optional<std::string>> Argument(const std::string& name, const Schemas& schemas);
  // Texts and other values of a shape, with what says which they are and the end of the tag.
  // `harmless`: the dialect's kinds that a text may be taken for.
  Status ArgumentOptions(const std::string& name, const Shape& shape, unsigned harmless,
                         std::vector<std::string>* options);
  Status ListedArguments(const std::string& name, const Shape& shape,
                         std::vector<std::string>* options);
  Result<std::optional<std::string>> ArgumentText(const Shape& shape, bool apart);
  // Refuses values that the dialect would take for texts.
  Status CheckTold(const std::string& name, const Shape& shape, TypeBits types) const;
  std::string Text(const std::string& text) const;
  std::string Other(const std::string& value) const;
  Result<std::optional<std::string>> OtherArgument(const Shape& shape);

  const json::value& root_;
  SchemaReader reader_;
  const TagStyle* tags_ = nullptr;  // while what is written stands in tags
  dialect::Tool tool_;              // as the dialect knows it
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
