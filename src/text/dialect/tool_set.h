// The tools of one request, as those who read and constrain its output need them. Immutable once
// made; shared by threads.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vivace::dialect {

struct Tool {
  std::string name;
  boost::json::value parameters;  // the schema; null: any object
  bool strict = false;            // the arguments must obey the schema
};

struct ToolSet {
  std::vector<Tool> tools;

  // Null for a name that is not there.
  const Tool* Find(std::string_view name) const;
};

// The kinds of JSON value that a schema lets through, as bits.
enum JsonKinds : unsigned {
  kNullKind = 1,
  kBoolKind = 2,
  kNumberKind = 4,
  kStringKind = 8,
  kArrayKind = 16,
  kObjectKind = 32,
  kAnyKind = 63,
};

// Its bit.
unsigned KindOf(const boost::json::value& value);

// Of the member `key` of a tool's arguments: what its schema says by type, const, enum, anyOf,
// oneOf and $ref within it. kAnyKind where it says nothing, kStringKind for a member it does not
// have and for no tool: text is text.
unsigned ArgumentKinds(const Tool* tool, std::string_view key);

// The member's schema lists its values (enum, const): space around one is not part of it.
bool HasListedValues(const Tool* tool, std::string_view key);

// A name that OpenAI's API allows, or one of those with dots that models write.
bool IsCallName(std::string_view name);

}  // namespace vivace::dialect
