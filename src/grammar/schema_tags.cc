// Arguments in tags, as XmlCall (text/dialect/xml_calls.h) reads them: a text stands as it is, up
// to the tag's end; other values are JSON. Where the tag doesn't say which it is, what is JSON of a
// kind that the tool's schema lets through is read as that, so that texts must not look like it.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "grammar/json_schema.h"
#include "grammar/schema_writer.h"
#include "text/dialect/json_text.h"

namespace vivace::grammar {
namespace {

using Expression = std::optional<std::string>;

// clang-format off
constexpr TagStyle kStyles[] = {
    {.name = "qwen_xml", .key_begin = "<parameter=", .key_end = ">", .value_begin = "",
     .value_end = "</parameter>", .says_text = "", .says_json = "", .breaks = true},
    {.name = "glm_xml", .key_begin = "<arg_key>", .key_end = "</arg_key>",
     .value_begin = "<arg_value>", .value_end = "</arg_value>", .says_text = "", .says_json = ""},
    {.name = "minimax_xml", .key_begin = "<parameter name=\"", .key_end = "\">",
     .value_begin = "", .value_end = "</parameter>", .says_text = "", .says_json = ""},
    {.name = "deepseek_xml", .key_begin = "<｜DSML｜parameter name=\"", .key_end = ">",
     .value_begin = "", .value_end = "</｜DSML｜parameter>", .says_text = "\" string=\"true\"",
     .says_json = "\" string=\"false\"", .keeps_breaks = true},
};
// clang-format on

// Begins no JSON and no Python constant.
const CodePoints kBeginsText = {{'A', 'E'}, {'G', 'M'}, {'O', 'S'}, {'U', 'Z'},   {'a', 'e'},
                                {'g', 'm'}, {'o', 's'}, {'u', 'z'}, {0xC0, 0x24F}};

// Leaves `without` out of all that the pattern matches. False: it needs some of it.
bool LeaveOut(const CodePoints& without, Pattern* pattern) {
  if (pattern->kind == Pattern::Kind::kSet) {
    pattern->set = pattern->set.Minus(without);
    return !pattern->set.empty();
  }
  return std::ranges::all_of(pattern->parts, [&](Pattern& p) { return LeaveOut(without, &p); });
}

bool SaysNothing(const Shape& shape) {
  return shape.meant() == kAnyType && shape.mentioned == 0 && !shape.values;
}

// The kinds of which a shape lets every value through.
unsigned WholeKinds(const Shape& shape) {
  if (shape.values) return 0;
  const TypeBits types = shape.meant();
  const auto with = [&](TypeBits bits, bool whole, unsigned kind) {
    return whole && (types & bits) == bits ? kind : 0u;
  };
  const bool any_number = !shape.lower && !shape.upper && !shape.whole_only;
  return with(kNull, true, dialect::kNullKind) | with(kBoolean, true, dialect::kBoolKind) |
         with(kInteger | kFraction, any_number, dialect::kNumberKind);
}

unsigned KindOfText(std::string_view text) {
  text = dialect::TrimSpace(text);
  if (text == "True" || text == "False") return dialect::kBoolKind;
  if (text == "None") return dialect::kNullKind;
  json::error_code error;
  const json::value value = json::parse(text, error, {}, {.max_depth = limits::kJsonDepth});
  return error ? unsigned{dialect::kStringKind} : dialect::KindOf(value);
}

}  // namespace

const TagStyle* FindTagStyle(std::string_view name) {
  const auto* found = std::ranges::find(kStyles, name, &TagStyle::name);
  return found == std::end(kStyles) ? nullptr : found;
}

bool IsTagStyle(std::string_view style) { return FindTagStyle(style) != nullptr; }

Result<std::string> SchemaToTags(const json::value& schema, std::string_view style,
                                 const std::string& field) {
  return SchemaWriter(schema, field).WriteTags(*FindTagStyle(style));
}

Result<std::string> SchemaWriter::WriteTags(const TagStyle& style) {
  tool_.parameters = root_;
  VIVACE_ASSIGN(const std::vector<Shape> shapes, reader_.Read({{&root_, ""}}));
  std::vector<std::string> options;
  for (const Shape& shape : shapes) {
    if ((shape.types & kObject) == 0) continue;
    if (shape.values) {
      return reader_.Refuse(shape.where,
                            "enum and const cannot be enforced for all arguments of a call at "
                            "once where it is written in tags; use properties");
    }
    tags_ = &style;
    VIVACE_ASSIGN(Expression list, Object(shape));
    if (list) options.push_back(std::move(*list));
  }
  if (options.empty()) return reader_.Refuse("", "no arguments can be valid");
  tags_ = nullptr;
  out_.Define("root", Either(options));
  out_.Define("gap", "\"\" | \"\\n\"");
  out_.Define("text", fmt::format("TagDispatch(loop_after_dispatch=false, excludes=({}))",
                                  Literal(style.value_end)));
  return JsonRules() + out_.text();
}

std::string SchemaWriter::Text(const std::string& text) const {
  const std::string end = Literal(tags_->value_end);
  const std::string begin = Literal(std::string(tags_->says_text) + std::string(tags_->key_end));
  const std::string value = Literal(tags_->value_begin);
  if (tags_->breaks && text != "text")
    return Seq({begin, value, Literal("\n"), text, Literal("\n"), end});
  return Seq({begin, value, text, end});
}

std::string SchemaWriter::Other(const std::string& value) const {
  return Seq({Literal(std::string(tags_->says_json) + std::string(tags_->key_end)),
              Literal(tags_->value_begin), "gap", value, "gap", Literal(tags_->value_end)});
}

Result<Expression> SchemaWriter::Argument(const std::string& name, const Schemas& schemas) {
  const bool plain = !name.empty() && dialect::TrimSpace(name).size() == name.size() &&
                     name.find_first_of("<>\"\n") == std::string::npos;
  if (!plain) {
    return reader_.Refuse(schemas.empty() ? "" : schemas[0].where,
                          fmt::format("'{}' cannot be the name of an argument that is written in "
                                      "tags",
                                      name));
  }
  VIVACE_ASSIGN(const std::vector<Shape> shapes, reader_.Read(schemas));
  std::vector<std::string> options;
  unsigned harmless = dialect::kStringKind;
  for (const Shape& shape : shapes) harmless |= WholeKinds(shape);
  for (const Shape& shape : shapes) {
    VIVACE_RETURN_IF_ERROR(ArgumentOptions(name, shape, harmless, &options));
  }
  if (options.empty()) return Expression();
  const std::string value = out_.AddRule("argument", Either(options));
  return Expression(Seq({Literal(std::string(tags_->key_begin) + name), value}));
}

Status SchemaWriter::ArgumentOptions(const std::string& name, const Shape& shape, unsigned harmless,
                                     std::vector<std::string>* options) {
  if (shape.values) return ListedArguments(name, shape, options);
  const bool told = !tags_->says_text.empty();
  if (SaysNothing(shape)) {
    // Any text is some value; one that is read as another kind is that.
    options->push_back(Text("text"));
    if (told) options->push_back(Other("value"));
    return {};
  }
  const TypeBits types = shape.meant();
  if ((types & kString) != 0) {
    const unsigned kinds = told ? 0u : dialect::ArgumentKinds(&tool_, name);
    VIVACE_ASSIGN(const Expression text, ArgumentText(shape, (kinds & ~harmless) != 0));
    if (text) options->push_back(Text(*text));
  }
  Shape rest = shape;
  rest.types = types & ~kString;
  rest.types_given = true;
  if (rest.types == 0) return {};
  VIVACE_RETURN_IF_ERROR(CheckTold(name, shape, rest.types));
  const TagStyle* tags = std::exchange(tags_, nullptr);
  auto body = Body(rest);
  tags_ = tags;
  if (!body) return tl::unexpected<Error>(std::move(body.error()));
  if (*body) options->push_back(Other(**body));
  return {};
}

Status SchemaWriter::CheckTold(const std::string& name, const Shape& shape, TypeBits types) const {
  if (!tags_->says_text.empty() || name.empty()) return {};
  constexpr std::pair<TypeBits, unsigned> kKinds[] = {
      {kNull, dialect::kNullKind},      {kBoolean, dialect::kBoolKind},
      {kInteger, dialect::kNumberKind}, {kFraction, dialect::kNumberKind},
      {kArray, dialect::kArrayKind},    {kObject, dialect::kObjectKind}};
  const unsigned kinds = dialect::ArgumentKinds(&tool_, name);
  for (const auto& [bit, kind] : kKinds) {
    if ((types & bit) == 0 || (kinds & kind) != 0) continue;
    return reader_.Refuse(shape.where,
                          fmt::format("'{}' would be taken for a text where arguments are written "
                                      "in tags; it must stand in properties of the whole schema, "
                                      "and its type there, not behind allOf or $ref",
                                      name));
  }
  return {};
}

Status SchemaWriter::ListedArguments(const std::string& name, const Shape& shape,
                                     std::vector<std::string>* options) {
  const TagStyle* tags = std::exchange(tags_, nullptr);
  auto checked = Values(shape);  // refuses what cannot be checked besides
  tags_ = tags;
  if (!checked) return tl::unexpected<Error>(std::move(checked.error()));
  const bool told = !tags_->says_text.empty();
  const unsigned kinds = told ? 0u : dialect::ArgumentKinds(&tool_, name);
  for (const json::value* value : *shape.values) {
    if (!Admits(shape, *value)) continue;
    if (!value->is_string()) {
      VIVACE_RETURN_IF_ERROR(CheckTold(name, shape, TypeOf(*value)));
      options->push_back(Other(Literal(JsonText(*value))));
      continue;
    }
    const std::string_view text = value->get_string();
    const unsigned kind = told ? unsigned{dialect::kStringKind} : KindOfText(text);
    const bool misread = kind != dialect::kStringKind && (kind & kinds) != 0;
    const bool kept = told || dialect::TrimSpace(text).size() == text.size();
    if (!misread && kept && text.find(tags_->value_end) == std::string_view::npos) {
      options->push_back(Text(Literal(text)));
    }
  }
  return {};
}

// `apart`: it must not look like JSON.
Result<Expression> SchemaWriter::ArgumentText(const Shape& shape, bool apart) {
  CodePoints without = {{0, 0}, {'<', '<'}};
  if (!tags_->breaks && !tags_->keeps_breaks) without.Add('\n', '\n');
  VIVACE_ASSIGN(std::optional<Pattern> pattern, PatternOf(shape));
  const bool counted = shape.min_length > 0 || shape.max_length != kUnbounded;
  if (!pattern && !counted) {
    return Expression(apart ? Seq({kBeginsText.ToClass(), "text"}) : "text");
  }
  if (apart) {
    return reader_.Refuse(shape.where,
                          "pattern, format and lengths cannot be enforced for an argument in tags "
                          "that may be of another type too; give it one type");
  }
  if (!pattern) pattern = Pattern::Repeated(Pattern::Of(CodePoints::All()), 0, kUnbounded);
  VIVACE_ASSIGN(std::optional<Pattern> fitting, WithLengths(shape, std::move(*pattern)));
  if (!fitting) return Expression();
  if (!LeaveOut(without, &*fitting)) {
    return reader_.Refuse(shape.where,
                          "the pattern asks for '<' or a line break, which an argument in tags "
                          "cannot have");
  }
  return Expression(ToExpression(*fitting, Spelling::kRaw));
}

// Arguments of any name, where none is named. What they are called is known to no schema, so that
// they are read as texts where the tag doesn't say what they are.
Result<Expression> SchemaWriter::OtherArgument(const Shape& shape) {
  const ObjectShape& object = shape.object;
  if (object.pattern_property || object.names) {
    return reader_.Refuse(shape.where,
                          "patternProperties and propertyNames cannot be enforced for arguments "
                          "that are written in tags");
  }
  if (object.closed || !object.properties.empty() || !object.required.empty()) return Expression();
  VIVACE_ASSIGN(const std::vector<Shape> shapes,
                reader_.Read(object.additional.value_or(Schemas{})));
  std::vector<std::string> options;
  for (const Shape& one : shapes) {
    if (tags_->says_text.empty() && !SaysNothing(one) && one.meant() != kString) {
      return reader_.Refuse(shape.where,
                            "additionalProperties of a type cannot be enforced for arguments that "
                            "are written in tags; name them in properties");
    }
    VIVACE_RETURN_IF_ERROR(ArgumentOptions("", one, dialect::kAnyKind, &options));
  }
  if (options.empty()) return Expression();
  return Expression(Seq({Literal(tags_->key_begin), "[a-zA-Z_] [a-zA-Z0-9_]*", Either(options)}));
}

}  // namespace vivace::grammar
