// Schemas whose values are spelled neither as JSON nor in tags (schema_tags.cc): the arguments of
// calls in Gemma's form.
//
// xgrammar's own converter spells these, and passes over what it cannot do: it looks at one of
// $ref, const, enum, anyOf, oneOf, allOf and type, in this order, and at few keywords beside. So
// what it would not hold to is refused here by name, with a JSON pointer; an allOf of one schema
// and a shut door (additionalProperties) are put in its words.
//
// Cost: linear in the schema. Any thread; stack: as deep as limits::kJsonDepth.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vivace::grammar {

// Changes `schema` to what the converter of `style` takes to mean no more than it did. `schema` has
// passed SchemaToEbnf. `field`: the request's member, for errors.
Status FitToStyle(std::string_view style, const std::string& field, boost::json::value* schema);

}  // namespace vivace::grammar
