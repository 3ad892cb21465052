#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"
#include "grammar/json_schema.h"
#include "grammar/schema_writer.h"

namespace vivace::grammar {
namespace {

// Blank space as JSON.stringify and json.dumps write it: none, one, or a line end with an indent.
// Characters: all but the ones that must be escaped; escapes: no surrogate without its other half.
//
// `(= ...)` says how what stands behind a rule can begin. It decides nothing (a rule may stand at
// the end), but without it every token that goes on behind the rule's end, half of the vocabulary
// behind a space, would be tried for each mask.
//
// Each such rule is two: xgrammar takes what is said behind a rule that is used once for all that
// may stand there, and would then let through any token that begins so (" t" behind a colon, as if
// the value could be `true`). The end of another rule is no such place. The inner one has a rule in
// it or may be empty, so that xgrammar doesn't make one of them again.
constexpr std::string_view kRules = R"EBNF(colon ::= colon_text (= behind_ws)
colon_text ::= ":" blank (= behind_ws)
blank ::= ("" | " ") (= behind_ws)
comma ::= comma_text (= behind_ws)
comma_text ::= ("," ws) (= behind_ws)
behind_ws ::= ["{\[\-0-9\]}] | "true" | "false" | "null"
plain ::= [\u0020\u0021\u0023-\u005B\u005D-\uD7FF\uE000-\U0010FFFF]
escape ::= "\\" ["\\/bfnrt] | "\\u" [0-9A-CE-Fa-ce-f] [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f] | "\\u" [Dd] [0-7] [0-9A-Fa-f] [0-9A-Fa-f] | "\\u" [Dd] [89ABab] [0-9A-Fa-f] [0-9A-Fa-f] "\\u" [Dd] [C-Fc-f] [0-9A-Fa-f] [0-9A-Fa-f]
escaped ::= escaped_text (= ["\\])
escaped_text ::= (escape [\u0020\u0021\u0023-\u005B\u005D-\uD7FF\uE000-\U0010FFFF]*) (= ["\\])
string ::= string_text (= [ \n\t]* [,:}\]])
string_text ::= ("\"" [\u0020\u0021\u0023-\u005B\u005D-\uD7FF\uE000-\U0010FFFF]* escaped* "\"") (= [ \n\t]* [,:}\]])
whole ::= whole_text (= [ \n\t]* [,}\]])
whole_text ::= ("-"? ("0" | [1-9] [0-9]{0,17})) (= [ \n\t]* [,}\]])
number ::= number_text (= [ \n\t]* [,}\]])
number_text ::= ("-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,15})? ([Ee] [+\-]? [0-9]{1,2})?) (= [ \n\t]* [,}\]])
boolean ::= ("true" | "false") (= [ \n\t]* [,}\]])
null ::= "null" (= [ \n\t]* [,}\]])
array ::= "[" ws (value (comma value)* ws)? "]"
object ::= "{" ws (member (comma member)* ws)? "}"
member ::= string colon value
value ::= (object | array | string | number | boolean | null) (= [ \n\t]* [,}\]])
)EBNF";

// Blank space, written out: a repetition would be rules inside rules, with nothing known of what
// stands behind the inner ones.
std::string BlankSpace() {
  std::string out = R"(ws ::= ws_text (= behind_ws)
ws_text ::= ("" | " " | "\n")";
  for (size_t spaces = 1; spaces <= 32; ++spaces) {
    fmt::format_to(std::back_inserter(out), R"( | "\n{:{}}")", "", spaces);
  }
  std::string tabs;
  for (int i = 1; i <= 8; ++i) {
    tabs += "\\t";
    fmt::format_to(std::back_inserter(out), R"( | "\n{}")", tabs);
  }
  return out + ") (= behind_ws)\n";
}

}  // namespace

std::string JsonRules() { return BlankSpace() + std::string(kRules); }

// The rule `plain | escape`, where characters are counted.
std::string JsonCharacter() {
  const CodePoints plain = {{' ', '!'}, {'#', '['}, {']', 0xD7FF}, {0xE000, 0x10FFFF}};
  return ToRegex(plain) +
         R"(|\\(?:["\\/bfnrt]|u(?:[0-9A-CE-Fa-ce-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f]|)"
         R"([Dd][0-7][0-9A-Fa-f][0-9A-Fa-f]|[Dd][89ABab][0-9A-Fa-f][0-9A-Fa-f]\\u[Dd][C-Fc-f])"
         R"([0-9A-Fa-f][0-9A-Fa-f])))";
}

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
