#include "text/jinja/json_dump.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/format.h"
#include "text/jinja/operators.h"

namespace vivace::jinja {
namespace {

void AppendEscaped(std::string& out, std::string_view text, bool ensure_ascii) {
  constexpr std::string_view kFrom = "\"\\\n\r\t\f\b", kTo = "\"\\nrtfb";
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = NextCodePoint(text, at);
    const size_t simple =
        code < 0x80 ? kFrom.find(static_cast<char>(code)) : std::string_view::npos;
    if (simple != std::string_view::npos) {
      out.append("\\").append(1, kTo[simple]);
    } else if (code < 0x20 || (ensure_ascii && code >= 0x7F && code < 0x10000)) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    } else if (ensure_ascii && code >= 0x10000) {
      const uint32_t rest = static_cast<uint32_t>(code) - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
    } else {
      out.append(text.substr(begin, at - begin));
    }
  }
}

class Dumper {
 public:
  Dumper(Runtime& runtime, const JsonStyle& style, StrBuilder& out)
      : runtime_(runtime), style_(style), out_(out) {}

  void Dump(Value value) {
    runtime_.Charge();
    const Runtime::Nesting nesting(runtime_);
    const bool trusted = !value.tainted;
    switch (value.kind) {
      case Kind::kString:
        return DumpStr(value.str);
      case Kind::kDict:
        return DumpDict(*value.dict, trusted);
      case Kind::kSeq:
        if (value.seq->kind == SeqKind::kList || value.seq->is_tuple()) {
          return DumpSeq(*value.seq, trusted);
        }
        break;
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
        return out_.Append(Scalar(value), trusted);
      default:
        break;
    }
    if (value.is_undefined()) RaiseUndefined(value);
    Raise(kBadArgument, "{} can't be written as JSON", TypeName(value));
  }

 private:
  static std::string Scalar(Value value) {
    if (value.is_none()) return "null";
    if (value.kind == Kind::kBool) return value.boolean ? "true" : "false";
    if (value.kind == Kind::kInt) return fmt::format("{}", value.integer);
    if (std::isnan(value.real)) return "NaN";
    if (std::isinf(value.real)) return value.real < 0 ? "-Infinity" : "Infinity";
    return FloatRepr(value.real);
  }

  void DumpStr(const Str* text) {
    text = Flat(runtime_.arena, text);
    runtime_.ChargeBytes(text->size);
    out_.Append('"', text->trusted);
    ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
      std::string escaped;
      AppendEscaped(escaped, piece, style_.ensure_ascii);
      out_.Append(escaped, trusted);
    });
    out_.Append('"', text->trusted);
  }

  void NewLine(bool trusted) {
    if (!style_.indent) return;
    out_.Append('\n', trusted);
    runtime_.ChargeItems(static_cast<size_t>(level_));
    for (int i = 0; i < level_; ++i) out_.Append(*style_.indent, trusted);
  }

  void DumpSeq(const Seq& seq, bool trusted) {
    out_.Append('[', trusted);
    ++level_;
    bool first = true;
    for (const Value& item : seq.items) {
      if (!std::exchange(first, false)) out_.Append(style_.item_separator, trusted);
      NewLine(trusted);
      Dump(item);
    }
    --level_;
    if (!seq.items.empty()) NewLine(trusted);
    out_.Append(']', trusted);
  }

  void DumpKey(Value key) {
    if (key.is_string()) return DumpStr(key.str);
    const bool scalar = key.is_number() || key.is_none();
    if (!scalar) Raise(kBadArgument, "a key of type {} can't be written as JSON", TypeName(key));
    out_.Append('"', !key.tainted);
    out_.Append(Scalar(key), !key.tainted);
    out_.Append('"', !key.tainted);
  }

  void DumpDict(const Dict& dict, bool trusted) {
    auto entries = std::vector<std::pair<Value, Value>>(dict.entries.begin(), dict.entries.end());
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return Compare(runtime_, a.first, b.first) < 0;
      });
    }
    out_.Append('{', trusted);
    ++level_;
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!std::exchange(first, false)) out_.Append(style_.item_separator, trusted);
      NewLine(trusted);
      DumpKey(key);
      out_.Append(style_.key_separator, trusted);
      Dump(value);
    }
    --level_;
    if (!entries.empty()) NewLine(trusted);
    out_.Append('}', trusted);
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  StrBuilder& out_;
  int level_ = 0;
};

}  // namespace

const Str* ToJson(Runtime& runtime, Value value, const JsonStyle& style) {
  StrBuilder out(runtime.arena);
  Dumper(runtime, style, out).Dump(value);
  return out.Finish();
}

}  // namespace vivace::jinja
