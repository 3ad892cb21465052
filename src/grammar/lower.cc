#include "grammar/lower.h"

#include <boost/json.hpp>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"
#include "grammar/ebnf.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/pattern.h"
#include "grammar/styled_schema.h"

namespace vivace::grammar {
namespace {

namespace json = boost::json;

tl::unexpected<Error> Refuse(const GrammarSpec& spec, std::string reason, const std::string& what) {
  return Fail(ErrorCode::kInvalidArgument, std::move(reason), spec.field, "{}", what);
}

Result<std::string> PatternEbnf(std::string_view text, const std::string& field) {
  VIVACE_ASSIGN(const Pattern pattern, ParsePattern(text, field));
  return "root ::= " + ToExpression(pattern, Spelling::kRaw) + "\n";
}

Result<Lowered> LowerChoice(const GrammarSpec& spec) {
  if (spec.choices.empty()) return Refuse(spec, "no_choices", "the list of choices is empty");
  if (spec.choices.size() > limits::kMaxGrammarChoices) {
    return Refuse(spec, "too_many_choices",
                  fmt::format("{} choices; at most {} are taken", spec.choices.size(),
                              limits::kMaxGrammarChoices));
  }
  std::vector<std::string> options;
  size_t bytes = 0;
  for (const std::string& choice : spec.choices) {
    bytes += choice.size();
    if (bytes > limits::kMaxGrammarBytes) {
      return Refuse(spec, "choices_too_large",
                    fmt::format("the choices have more than {} bytes", limits::kMaxGrammarBytes));
    }
    if (choice.empty()) return Refuse(spec, "empty_choice", "a choice is the empty text");
    if (!utf8::IsValid(choice) || choice.find('\0') != std::string::npos) {
      return Refuse(spec, "bad_choice", "a choice is not UTF-8, or has a NUL character");
    }
    options.push_back(Literal(choice));
  }
  return Lowered{Lowered::Kind::kEbnf, "root ::= " + Either(options) + "\n"};
}

// Replaces what this folder knows better by grammars: schemas and patterns, wherever they stand.
class StructuralTag {
 public:
  explicit StructuralTag(const GrammarSpec& spec) : spec_(spec) {}

  Result<Lowered> Lower() {
    json::parse_options options;
    options.max_depth = limits::kJsonDepth;
    json::error_code error;
    json::value root = json::parse(spec_.text, error, {}, options);
    if (error || !root.is_object()) {
      return Refuse(spec_, "bad_structural_tag", "a structural tag is a JSON object");
    }
    json::object& tag = root.get_object();
    tag["type"] = "structural_tag";
    if (!tag.contains("format")) VIVACE_RETURN_IF_ERROR(FromStructures(&tag));
    VIVACE_RETURN_IF_ERROR(Walk(&tag.at("format")));
    return Lowered{Lowered::Kind::kStructural, json::serialize(root), names_tokens_, of_client_};
  }

 private:
  // vLLM's older spelling: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}.
  Status FromStructures(json::object* tag) {
    const json::value* structures = tag->if_contains("structures");
    const json::value* triggers = tag->if_contains("triggers");
    if (structures == nullptr || !structures->is_array() || triggers == nullptr ||
        !triggers->is_array()) {
      return Refuse(spec_, "bad_structural_tag",
                    "a structural tag has a format, or structures and triggers");
    }
    json::array tags;
    for (const json::value& one : structures->get_array()) {
      const json::object* given = one.if_object();
      if (given == nullptr || !given->contains("begin") || !given->contains("end") ||
          !given->contains("schema")) {
        return Refuse(spec_, "bad_structural_tag", "each of structures has begin, schema and end");
      }
      tags.push_back({{"type", "tag"},
                      {"begin", given->at("begin")},
                      {"content", {{"type", "json_schema"}, {"json_schema", given->at("schema")}}},
                      {"end", given->at("end")}});
    }
    (*tag)["format"] = {{"type", "triggered_tags"}, {"triggers", *triggers}, {"tags", tags}};
    tag->erase("structures");
    tag->erase("triggers");
    return {};
  }

  Status Walk(json::value* value) {
    if (json::array* array = value->if_array()) {
      for (json::value& item : *array) VIVACE_RETURN_IF_ERROR(Walk(&item));
      return {};
    }
    json::object* object = value->if_object();
    if (object == nullptr) return {};
    const json::value* type = object->if_contains("type");
    if (type != nullptr && type->is_string()) {
      if (type->get_string() == "json_schema") return Schema(object);
      if (type->get_string() == "regex") return Regex(object);
      if (type->get_string() == "grammar") return Grammar(object);
      names_tokens_ |= type->get_string().find("token") != json::string::npos;
    }
    for (auto& member : *object) VIVACE_RETURN_IF_ERROR(Walk(&member.value()));
    return {};
  }

  Status Schema(json::object* format) {
    const json::value* schema = format->if_contains("json_schema");
    if (schema == nullptr) {
      return Refuse(spec_, "bad_structural_tag", "a json_schema format without its json_schema");
    }
    const json::value held = *schema;  // shapes point into it
    VIVACE_ASSIGN(const std::string ebnf, SchemaToEbnf(held, spec_.field));
    const json::value* style = format->if_contains("style");
    if (style != nullptr && *style != "json") {  // spelled by xgrammar
      const std::string name = style->is_string() ? std::string(style->get_string()) : "";
      if (!IsTagStyle(name)) return FitToStyle(name, spec_.field, &format->at("json_schema"));
      VIVACE_ASSIGN(const std::string tags, SchemaToTags(held, name, spec_.field));
      *format = {{"type", "grammar"}, {"grammar", tags}};
      return {};
    }
    for (const auto& member : *format) {
      const std::string_view name = member.key();
      if (name != "type" && name != "json_schema" && name != "style") {
        return Refuse(spec_, "bad_structural_tag",
                      fmt::format("a json_schema format cannot have '{}' here", name));
      }
    }
    *format = {{"type", "grammar"}, {"grammar", ebnf}};
    return {};
  }

  Status Regex(json::object* format) {
    const json::value* pattern = format->if_contains("pattern");
    if (pattern == nullptr || !pattern->is_string() || format->size() != 2) {
      return Refuse(spec_, "bad_structural_tag", "a regex format has a pattern and nothing else");
    }
    VIVACE_ASSIGN(const std::string ebnf, PatternEbnf(pattern->get_string(), spec_.field));
    *format = {{"type", "grammar"}, {"grammar", ebnf}};
    return {};
  }

  Status Grammar(json::object* format) {
    of_client_ = true;
    json::value* grammar = format->if_contains("grammar");
    if (grammar == nullptr || !grammar->is_string()) {
      return Refuse(spec_, "bad_structural_tag", "a grammar format has a grammar, which is a text");
    }
    *grammar = GbnfToEbnf(grammar->get_string());
    return {};
  }

  const GrammarSpec& spec_;
  bool names_tokens_ = false;
  bool of_client_ = false;
};

}  // namespace

Result<Lowered> Lower(const GrammarSpec& spec) {
  using Kind = GrammarSpec::Kind;
  if (spec.kind == Kind::kChoice) return LowerChoice(spec);
  if (spec.kind == Kind::kJsonObject) return Lowered{Lowered::Kind::kEbnf, AnyObjectEbnf()};
  if (spec.text.size() > limits::kMaxGrammarBytes) {
    return Refuse(spec, "grammar_too_large",
                  fmt::format("it has {} bytes; at most {} are taken", spec.text.size(),
                              limits::kMaxGrammarBytes));
  }
  if (!utf8::IsValid(spec.text) || spec.text.find('\0') != std::string::npos) {
    return Refuse(spec, "bad_grammar", "it is not UTF-8, or has a NUL character");
  }
  Lowered out;
  if (spec.kind == Kind::kJsonSchema) {
    VIVACE_ASSIGN(out.text, SchemaToEbnf(spec.text, spec.field));
  } else if (spec.kind == Kind::kRegex) {
    VIVACE_ASSIGN(out.text, PatternEbnf(spec.text, spec.field));
  } else if (spec.kind == Kind::kStructural) {
    VIVACE_ASSIGN(out, StructuralTag(spec).Lower());
  } else {
    out.text = GbnfToEbnf(spec.text);
    out.of_client = true;
  }
  if (out.text.size() > limits::kMaxGrammarTextBytes) {
    return Refuse(spec, "grammar_too_complex", "it is too large when it is written out");
  }
  return out;
}

std::string KeyOf(const GrammarSpec& spec) {
  std::string key = fmt::format("{}:{}", static_cast<int>(spec.kind), spec.text);
  for (const std::string& choice : spec.choices) {
    key += fmt::format("\x1f{}:{}", choice.size(), choice);
  }
  return key;
}

}  // namespace vivace::grammar
