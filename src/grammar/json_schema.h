// JSON schemas as grammars.
//
// What is written is strict JSON (RFC 8259) that the schema allows; not all of it, where a narrower
// form costs a client nothing:
//  - members in the order of the schema, no member twice; an object whose `properties` are given
//    and whose `additionalProperties` are not has no others (as with OpenAI and vLLM);
//  - an array whose `prefixItems` are given and whose `items` are not has no others;
//  - blank space only where JSON.stringify or json.dumps would put it: at most one, or a line end
//    and an indent, so that no answer can be endless blank space;
//  - whole numbers of at most 18 digits, no escapes but those JSON knows, no lone surrogates;
//  - a `pattern` is matched as a whole.
//
// Cost: linear in the schema, bounded (grammar/schema_shape.h). Any thread.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vivace::grammar {

// The schema's text as a grammar with the rule "root". Errors are kInvalidArgument with `field`,
// and name the keyword and where it is.
Result<std::string> SchemaToEbnf(std::string_view schema, const std::string& field);
Result<std::string> SchemaToEbnf(const boost::json::value& schema, const std::string& field);

// Whether SchemaToTags knows the style.
bool IsTagStyle(std::string_view style);

// Arguments of a call in tags, `<parameter=city>Graz</parameter>` for one of the style "qwen_xml":
// an object's members as the dialect of that style (text/dialect) reads them with this schema.
Result<std::string> SchemaToTags(const boost::json::value& schema, std::string_view style,
                                 const std::string& field);

// Any JSON object.
std::string AnyObjectEbnf();

}  // namespace vivace::grammar
