#include "grammar/schema_writer.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "grammar/counted.h"
#include "grammar/json_schema.h"
#include "grammar/number_range.h"
#include "grammar/schema_formats.h"

namespace vivace::grammar {
namespace {

using Expression = std::optional<std::string>;

constexpr int64_t kMostMultiples = 1'000;  // written out one by one
constexpr int64_t kMostRemainders = 200;   // of an automaton

// Values that an enum lists and other keywords of the same schema would have to be checked against.
bool ChecksMore(const Shape& shape) {
  const ObjectShape& object = shape.object;
  return shape.pattern || shape.format || shape.array.items || !shape.array.prefix.empty() ||
         shape.array.min > 0 || shape.array.max != kUnbounded || !object.properties.empty() ||
         !object.required.empty() || object.additional || object.pattern_property || object.names ||
         object.min > 0 || object.max != kUnbounded;
}

bool RepeatsOneSet(const Pattern& pattern) {
  return pattern.kind == Pattern::Kind::kRepeat && pattern.parts[0].kind == Pattern::Kind::kSet;
}

// Not where nothing need be counted.
bool IsCounted(const Pattern& repeat) {
  return repeat.max == kUnbounded ? repeat.min > 1 : repeat.max > 1;
}

}  // namespace

Result<std::string> SchemaWriter::Write() {
  VIVACE_ASSIGN(const Expression root, Value({{&root_, ""}}));
  if (!root) return reader_.Refuse("", "no value can be valid");
  out_.Define("root", *root);
  return JsonRules() + out_.text();
}

Result<Expression> SchemaWriter::Value(const Schemas& schemas) {
  if (schemas.empty()) return Expression("value");
  std::vector<const json::value*> key;
  for (const SchemaRef& schema : schemas) key.push_back(schema.schema);
  std::ranges::sort(key);
  key.erase(std::unique(key.begin(), key.end()), key.end());
  if (const auto found = rules_.find(key); found != rules_.end()) {
    found->second.used_open |= found->second.open;
    return found->second.name;
  }
  if (depth_ >= limits::kMaxSchemaDepth) {
    return reader_.Refuse(schemas[0].where,
                          fmt::format("schemas nest more than {} deep", limits::kMaxSchemaDepth));
  }
  const std::string name = out_.Reserve("v");
  Rule& rule = rules_[key];
  rule.name = name;  // before the body, which may refer to it
  ++depth_;
  VIVACE_ASSIGN(const std::vector<Shape> shapes, reader_.Read(schemas));
  std::vector<std::string> options;
  for (const Shape& shape : shapes) {
    VIVACE_ASSIGN(Expression body, Body(shape));
    if (body && std::ranges::find(options, *body) == options.end()) {
      options.push_back(std::move(*body));
    }
  }
  --depth_;
  rule.open = false;
  if (options.empty()) {
    if (rule.used_open) return reader_.Refuse(schemas[0].where, "no value can be valid");
    rule.name = std::nullopt;
    return Expression();
  }
  out_.Define(name, Either(options));
  if (out_.size() > limits::kMaxGrammarTextBytes) {
    return reader_.Refuse(schemas[0].where, "the schema is too large to be turned into a grammar");
  }
  return Expression(name);
}

Result<Expression> SchemaWriter::Body(const Shape& shape) {
  if (shape.values) return Values(shape);
  const TypeBits types = shape.meant();
  if (types == kAnyType && shape.mentioned == 0) return Expression("value");
  std::vector<std::string> options;
  using Writer = Result<Expression> (SchemaWriter::*)(const Shape&);
  constexpr std::pair<TypeBits, Writer> kWriters[] = {
      {kObject, &SchemaWriter::Object},
      {kArray, &SchemaWriter::Array},
      {kString, &SchemaWriter::String},
      {kInteger | kFraction, &SchemaWriter::Numbers},
  };
  for (const auto& [bits, writer] : kWriters) {
    if ((types & bits) == 0) continue;
    VIVACE_ASSIGN(Expression option, (this->*writer)(shape));
    if (option) options.push_back(std::move(*option));
  }
  if (types & kBoolean) options.emplace_back("boolean");
  if (types & kNull) options.emplace_back("null");
  if (options.empty()) return Expression();
  return Expression(Either(options));
}

Result<Expression> SchemaWriter::Values(const Shape& shape) {
  std::vector<std::string> options;
  for (const json::value* value : *shape.values) {
    if (Admits(shape, *value)) options.push_back(Literal(JsonText(*value)));
  }
  if (ChecksMore(shape) && !options.empty()) {
    return reader_.Refuse(shape.where,
                          "enum and const cannot be enforced together with keywords "
                          "other than type, ranges and lengths");
  }
  if (options.empty()) return Expression();
  return Expression(Either(options));
}

Result<Expression> SchemaWriter::Whole(const Shape& shape) {
  int64_t low = -kMostWhole, high = kMostWhole;
  if (shape.lower) {
    const ExactNumber least = std::ceil(shape.lower->value);
    if (least > kMostWhole) return reader_.Refuse(shape.where, "the minimum is too large");
    low = std::max(low, static_cast<int64_t>(std::max(least, ExactNumber{-1e18})) +
                            (shape.lower->strict && least == shape.lower->value));
  }
  if (shape.upper) {
    const ExactNumber most = std::floor(shape.upper->value);
    if (most < -kMostWhole) return reader_.Refuse(shape.where, "the maximum is too small");
    high = std::min(high, static_cast<int64_t>(std::min(most, ExactNumber{1e18})) -
                              (shape.upper->strict && most == shape.upper->value));
  }
  if (low > high) return Expression();
  if (shape.multiple_of == 1) {
    if (!shape.lower && !shape.upper) return Expression("whole");
    return Expression(WholeRange(low, high));
  }
  const int64_t factor = shape.multiple_of;
  if (!shape.lower && !shape.upper && factor <= kMostRemainders) {
    return Expression(Multiples(factor, &out_));
  }
  const int64_t first = low / factor + (low % factor > 0),
                last = high / factor - (high % factor < 0);
  if (first > last) return Expression();
  if (last - first >= kMostMultiples) {
    return reader_.Refuse(shape.where, fmt::format("multipleOf can be enforced up to {}, or with a "
                                                   "minimum and a maximum that have at most {} "
                                                   "multiples between them",
                                                   kMostRemainders, kMostMultiples));
  }
  std::vector<std::string> options;
  for (int64_t n = first; n <= last; ++n) options.push_back(Literal(std::to_string(n * factor)));
  return Expression(Either(options));
}

Result<Expression> SchemaWriter::Numbers(const Shape& shape) {
  const TypeBits types = shape.meant();
  if ((types & kFraction) == 0 || shape.whole_only) return Whole(shape);
  if (!shape.lower && !shape.upper) return Expression("number");
  for (const auto* bound : {&shape.lower, &shape.upper}) {
    if (*bound && std::abs((*bound)->value) >= 1e15) {
      return reader_.Refuse(shape.where, "bounds of a number can be enforced up to 1e15");
    }
  }
  return NumberRange(shape.lower, shape.upper);
}

Result<std::optional<Pattern>> SchemaWriter::PatternOf(const Shape& shape) const {
  if (shape.pattern && shape.format) {
    return reader_.Refuse(shape.where, "pattern and format cannot be enforced together");
  }
  if (shape.pattern) {
    auto pattern = ParsePattern(*shape.pattern, reader_.field());
    if (!pattern) return reader_.Refuse(shape.where + "/pattern", pattern.error().message);
    return std::optional<Pattern>(std::move(*pattern));
  }
  if (!shape.format) return std::optional<Pattern>();
  VIVACE_ASSIGN(Pattern pattern, ParsePattern(FormatPattern(*shape.format), "format"));
  return std::optional<Pattern>(std::move(pattern));
}

Result<Expression> SchemaWriter::String(const Shape& shape) {
  VIVACE_ASSIGN(const std::optional<Pattern> pattern, PatternOf(shape));
  if (pattern) return StringOf(shape, *pattern);
  if (shape.min_length == 0 && shape.max_length == kUnbounded) return Expression("string");
  for (const int64_t length : {shape.min_length, shape.max_length}) {
    if (length > limits::kMaxGrammarRepeat) {
      return reader_.Refuse(shape.where, fmt::format("lengths of a string can be enforced up to {}",
                                                     limits::kMaxGrammarRepeat));
    }
  }
  return Expression(Counted({}, JsonCharacter(), shape.min_length, shape.max_length));
}

std::string SchemaWriter::Counted(std::vector<std::string> before, const std::string& character,
                                  int64_t min, int64_t max) {
  before.insert(before.begin(), Literal("\""));
  constexpr std::string_view kBehind = R"( (= [ \n\t]* [,:}\]]))";  // and two rules: json_rules.cc
  const std::string rest = CountedRest(character, min, max);
  std::string& rule = counted_[rest];
  if (rule.empty()) {
    rule = rest;
    for (int i = 0; i < 2; ++i) rule = out_.AddRule("counted", rule.append(kBehind));
  }
  before.push_back(rule);
  return Seq(before);
}

// Lengths beside a pattern hold where they follow from it, or where it repeats one set.
Result<std::optional<Pattern>> SchemaWriter::WithLengths(const Shape& shape,
                                                         Pattern pattern) const {
  const Lengths lengths = LengthsOf(pattern);
  const int64_t min = shape.min_length, max = shape.max_length;
  const bool fits_max = max == kUnbounded || (lengths.max != kUnbounded && lengths.max <= max);
  if (lengths.min < min || !fits_max) {
    if (!RepeatsOneSet(pattern)) {
      return reader_.Refuse(shape.where,
                            "minLength and maxLength cannot be enforced together with "
                            "this pattern or format");
    }
    pattern.min = std::max(pattern.min, min);
    if (!fits_max) pattern.max = max;
    if (pattern.max != kUnbounded && pattern.min > pattern.max) return std::optional<Pattern>();
    if (pattern.min > limits::kMaxGrammarRepeat || pattern.max > limits::kMaxGrammarRepeat) {
      return reader_.Refuse(shape.where, "lengths of a string are too large to be enforced");
    }
  }
  return std::optional<Pattern>(std::move(pattern));
}

Result<Expression> SchemaWriter::StringOf(const Shape& shape, const Pattern& given) {
  VIVACE_ASSIGN(std::optional<Pattern> fitting, WithLengths(shape, given));
  if (!fitting) return Expression();
  Pattern pattern = std::move(*fitting);
  std::vector<Pattern> parts;
  if (pattern.kind == Pattern::Kind::kConcat) {
    parts = std::move(pattern.parts);
  } else {
    parts.push_back(std::move(pattern));
  }
  std::vector<std::string> before;
  const bool counted = !parts.empty() && RepeatsOneSet(parts.back()) && IsCounted(parts.back());
  for (size_t i = 0; i + (counted ? 1 : 0) < parts.size(); ++i) {
    before.push_back(ToExpression(parts[i], Spelling::kJsonString));
  }
  if (counted) {
    const Pattern& last = parts.back();
    return Expression(
        Counted(std::move(before), ToJsonRegex(last.parts[0].set), last.min, last.max));
  }
  before.insert(before.begin(), Literal("\""));
  before.push_back(Literal("\""));
  return Expression(Seq(before));
}

Result<Expression> SchemaWriter::Array(const Shape& shape) {
  const ArrayShape& array = shape.array;
  const auto fixed = static_cast<int64_t>(array.prefix.size());
  if (array.min > limits::kMaxGrammarRepeat ||
      (array.max != kUnbounded && array.max > limits::kMaxGrammarRepeat)) {
    return reader_.Refuse(shape.where, fmt::format("counts of items can be enforced up to {}",
                                                   limits::kMaxGrammarRepeat));
  }
  const Expression none = Seq({Literal("["), "ws", Literal("]")});
  if (array.max == 0) return none;
  // What may follow the first `fixed` items.
  Expression item;
  if (array.items || fixed == 0 || array.min > fixed) {
    VIVACE_ASSIGN(item, Value(array.items.value_or(Schemas{})));
  }
  const int64_t more_min = std::max<int64_t>(array.min - fixed, 0);
  int64_t more_max = array.max == kUnbounded ? kUnbounded : std::max<int64_t>(array.max - fixed, 0);
  if (!item) {
    if (more_min > 0) return Expression();
    more_max = 0;
  }
  std::string tail(kEmptyExpression);  // behind the items written so far
  if (more_max != 0) {
    const std::string next = Seq({"comma", *item});
    if (fixed > 0) {
      tail = Repeat(next, more_min, more_max);
    } else {
      const std::string list =
          Seq({*item, Repeat(next, std::max<int64_t>(more_min - 1, 0),
                             more_max == kUnbounded ? kUnbounded : more_max - 1)});
      tail = more_min == 0 ? Optional(Seq({list, "ws"})) : Seq({list, "ws"});
      return Expression(Seq({Literal("["), "ws", tail, Literal("]")}));
    }
  }
  int64_t last = fixed;
  if (array.max != kUnbounded) last = std::min(last, array.max);
  for (int64_t i = last; i-- > 0;) {
    VIVACE_ASSIGN(const Expression value, Value(array.prefix[static_cast<size_t>(i)]));
    if (!value) {
      if (i < array.min) return Expression();
      tail = kEmptyExpression;
      continue;
    }
    const std::string here = i == 0 ? Seq({*value, tail}) : Seq({"comma", *value, tail});
    tail = i < array.min ? here : Optional(here);
  }
  return Expression(Seq({Literal("["), "ws", tail, "ws", Literal("]")}));
}

Result<std::string> SchemaToEbnf(const json::value& schema, const std::string& field) {
  return SchemaWriter(schema, field).Write();
}

Result<std::string> SchemaToEbnf(std::string_view schema, const std::string& field) {
  if (schema.size() > limits::kMaxGrammarBytes) {
    return Fail(ErrorCode::kInvalidArgument, "schema_too_large", field,
                "the schema has {} bytes; at most {} are taken", schema.size(),
                limits::kMaxGrammarBytes);
  }
  json::parse_options options;
  options.max_depth = limits::kJsonDepth;
  json::error_code error;
  const json::value value = json::parse(schema, error, {}, options);
  if (error) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_json", field,
                "the schema is not JSON, or nests more than {} deep: {}", limits::kJsonDepth,
                error.message());
  }
  return SchemaToEbnf(value, field);
}

}  // namespace vivace::grammar
