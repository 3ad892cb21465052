#include "text/jinja/template.h"

#include <boost/json.hpp>

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace vivace::jinja {
namespace {

Value FromJson(Runtime& runtime, const boost::json::value& json, bool trusted) {
  const Runtime::Nesting nesting(runtime);
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value::None().Tainted(!trusted);
    case boost::json::kind::bool_:
      return Value::Bool(json.get_bool()).Tainted(!trusted);
    case boost::json::kind::int64:
      return Value::Int(json.get_int64()).Tainted(!trusted);
    case boost::json::kind::double_:
      return Value::Float(json.get_double()).Tainted(!trusted);
    case boost::json::kind::uint64:
      if (json.get_uint64() > INT64_MAX) Raise(kBadArgument, "an integer is beyond 64 bits");
      return Value::Int(static_cast<int64_t>(json.get_uint64())).Tainted(!trusted);
    case boost::json::kind::string: {
      const auto& text = json.get_string();
      return Value::Of(MakeStr(runtime.arena, {text.data(), text.size()}, trusted));
    }
    case boost::json::kind::array: {
      Seq* seq = runtime.NewSeq(SeqKind::kList);
      seq->items.reserve(json.get_array().size());
      for (const auto& item : json.get_array()) {
        seq->items.push_back(FromJson(runtime, item, trusted));
      }
      return Value::Of(seq).Tainted(!trusted);
    }
    case boost::json::kind::object: {
      Dict* dict = runtime.arena.New<Dict>(&runtime.arena);
      dict->entries.reserve(json.get_object().size());
      for (const auto& member : json.get_object()) {
        const std::string_view key(member.key().data(), member.key().size());
        dict->entries.emplace_back(Value::Of(MakeStr(runtime.arena, key, trusted)),
                                   FromJson(runtime, member.value(), trusted));
      }
      return Value::Of(dict).Tainted(!trusted);
    }
  }
  return Value::None();
}

RenderedPrompt ToPrompt(StrBuilder& out) {
  RenderedPrompt prompt;
  size_t begin = 0;
  prompt.segments.reserve(out.runs().size());
  for (const Run& run : out.runs()) {
    prompt.segments.push_back({begin, run.end, run.trusted});
    begin = run.end;
  }
  prompt.text = std::move(out.bytes());
  return prompt;
}

}  // namespace

Result<Template> Template::Parse(std::string_view source) {
  uint32_t line = 1;
  try {
    return Template(ParseTemplate(source, line));
  } catch (const TemplateError& error) {
    const ErrorCode code = error.reason == std::string_view(kUnsupportedStatement)
                               ? ErrorCode::kUnsupported
                               : ErrorCode::kCorruptData;
    return Fail(code, error.reason, "chat_template", "chat template, line {}: {}", line,
                error.message);
  }
}

Result<RenderedPrompt> Template::Render(std::span<const Variable> variables,
                                        const std::tm& now) const {
  uint32_t line = 1;
  try {
    Interpreter interpreter(*ast_);
    interpreter.now = now;
    StrBuilder out(interpreter.arena);
    try {
      for (const Variable& variable : variables) {
        if (!interpreter.Mentions(variable.name)) continue;
        interpreter.SetVariable(variable.name,
                                FromJson(interpreter, *variable.value, variable.trusted));
      }
      interpreter.Run(out);
    } catch (...) {
      line = interpreter.line();
      throw;
    }
    return ToPrompt(out);
  } catch (const TemplateError& error) {
    if (error.reason == std::string_view(kRaisedByTemplate)) {
      return Fail(ErrorCode::kInvalidArgument, error.reason, "messages", "{}", error.message);
    }
    return Fail(ErrorCode::kInvalidArgument, error.reason, "messages", "chat template, line {}: {}",
                line, error.message);
  }
}

}  // namespace vivace::jinja
