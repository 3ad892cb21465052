#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"
#include "grammar/json_schema.h"
#include "grammar/schema_writer.h"

namespace vivace::grammar {
namespace {

// Blank space as JSON.stringify and json.dumps write it: none, one, or a line end with an indent.
// Characters: all but the ones that must be escaped; escapes: no surrogate without its other half.
constexpr std::string_view kRules = R"EBNF(ws ::= "" | " " | "\n" ([ ]{0,32} | [\t]{1,8})
colon ::= ":" [ ]?
comma ::= "," ws
plain ::= [\u0020\u0021\u0023-\u005B\u005D-\uD7FF\uE000-\U0010FFFF]
hex ::= [0-9A-Fa-f]
escape ::= "\\" (["\\/bfnrt] | "u" code)
code ::= [0-9A-CE-Fa-ce-f] hex hex hex | [Dd] ([0-7] hex hex | [89ABab] hex hex "\\u" [Dd] [C-Fc-f] hex hex)
char ::= plain | escape
string ::= "\"" char* "\""
whole ::= "-"? ("0" | [1-9] [0-9]{0,17})
number ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,15})? ([Ee] [+\-]? [0-9]{1,2})?
boolean ::= "true" | "false"
null ::= "null"
array ::= "[" ws (value (comma value)* ws)? "]"
object ::= "{" ws (member (comma member)* ws)? "}"
member ::= string colon value
value ::= object | array | string | number | boolean | null
)EBNF";

}  // namespace

std::string JsonRules() { return std::string(kRules); }

std::string AnyObjectEbnf() { return JsonRules() + "root ::= object\n"; }

std::string JsonText(const json::value& value) {
  std::string out;
  switch (value.kind()) {
    case json::kind::string:
      AppendJsonString(out, value.get_string());
      break;
    case json::kind::double_: {
      out = fmt::format("{}", value.get_double());
      break;
    }
    case json::kind::array: {
      out = "[";
      for (const json::value& item : value.get_array()) {
        if (out.size() > 1) out += ", ";
        out += JsonText(item);
      }
      out += "]";
      break;
    }
    case json::kind::object: {
      out = "{";
      for (const auto& member : value.get_object()) {
        if (out.size() > 1) out += ", ";
        AppendJsonString(out, member.key());
        out += ": " + JsonText(member.value());
      }
      out += "}";
      break;
    }
    default:
      out = json::serialize(value);
  }
  return out;
}

}  // namespace vivace::grammar
