#include "text/dialect/output_grammar.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace vivace {
namespace {

namespace json = boost::json;
using dialect::CallSpelling;
using dialect::Tool;
using dialect::ToolFormat;

json::value Sequence(json::array elements) {
  if (elements.size() == 1) return elements[0];
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}
json::value Or(json::array elements) {
  if (elements.size() == 1) return elements[0];
  return {{"type", "or"}, {"elements", std::move(elements)}};
}
json::value Around(std::string_view type, json::value content) {
  return {{"type", type}, {"content", std::move(content)}};
}
json::value AnyText() { return {{"type", "any_text"}}; }
json::value Token(TokenId id) { return {{"type", "token"}, {"token", id}}; }
// What models write between a thought and what follows.
json::value Space() { return {{"type", "regex"}, {"pattern", "[ \\n]{0,4}"}}; }

class GrammarBuilder {
 public:
  explicit GrammarBuilder(const OutputRules& rules)
      : rules_(rules), format_(*rules.dialect->tools), spelling_(format_.spelling) {}

  OutputGrammar Build() {
    if (format_.shape == dialect::CallShape::kHarmony) {
      return {Wrapped(Harmony()), -1};
    }
    json::value body = Body();
    OutputGrammar grammar;
    if (rules_.reasoning == ReasoningStart::kOpen && rules_.dialect->reasoning_end_token >= 0) {
      grammar.begin_after = rules_.dialect->reasoning_end_token;
      body = Sequence({Space(), std::move(body)});
    } else if (rules_.reasoning != ReasoningStart::kNone && rules_.dialect->reasoning != nullptr) {
      body = WithThought(std::move(body));
    }
    grammar.structural_tag = Wrapped(std::move(body));
    return grammar;
  }

 private:
  static std::string Wrapped(json::value format) {
    return json::serialize(json::value{{"type", "structural_tag"}, {"format", std::move(format)}});
  }

  // Appends `text`, its control tokens as tokens.
  void Literal(std::string_view text, json::array* out) const {
    while (!text.empty()) {
      size_t at = text.size();
      const Dialect::MarkToken* next = nullptr;
      for (const Dialect::MarkToken& token : rules_.dialect->mark_tokens) {
        const size_t found = text.find(token.text);
        if (found < at) at = found, next = &token;
      }
      if (at > 0) out->push_back({{"type", "const_string"}, {"value", text.substr(0, at)}});
      if (next == nullptr) return;
      out->push_back(Token(next->id));
      text.remove_prefix(at + next->text.size());
    }
  }

  // An object whatever the schema allows besides: other values are no arguments of a call.
  json::value Arguments(const Tool& tool, std::string_view style) const {
    json::object format = {{"type", "json_schema"}};
    json::object schema;
    if (rules_.schemas && tool.parameters.is_object()) schema = tool.parameters.get_object();
    schema.emplace("type", "object");
    schema.erase("nullable");
    format["json_schema"] = std::move(schema);
    if (style != "json") format["style"] = style;
    return format;
  }

  template <typename Make>
  json::value OneOfTools(Make make) const {
    json::array calls;
    for (const Tool& tool : rules_.tools->tools) {
      if (rules_.only.empty() || tool.name == rules_.only) calls.push_back(make(tool));
    }
    return Or(std::move(calls));
  }

  // `skip` bytes of the call's beginning have been written.
  json::value Call(const Tool& tool, size_t skip) const {
    std::string begin(spelling_.call_begin.substr(skip));
    begin.replace(begin.find('@'), 1, tool.name);
    json::array elements;
    Literal(begin, &elements);
    elements.push_back(Arguments(tool, spelling_.style));
    Literal(spelling_.call_end, &elements);
    return Sequence(std::move(elements));
  }
  json::value AnyCall(size_t skip) const {
    return OneOfTools([&](const Tool& tool) { return Call(tool, skip); });
  }

  // All calls of a turn, of which `skip` bytes have been written. `several`: more may follow.
  json::value Calls(size_t skip, bool several) const {
    json::array elements;
    const bool section = !spelling_.section_begin.empty();
    if (section) Literal(spelling_.section_begin.substr(skip), &elements);
    elements.push_back(AnyCall(section ? 0 : skip));
    if (several) {
      json::array more;
      Literal(spelling_.separator, &more);
      more.push_back(AnyCall(0));
      elements.push_back(Around("star", Sequence(std::move(more))));
    }
    Literal(spelling_.section_end, &elements);
    return Sequence(std::move(elements));
  }

  json::value Body() const {
    const bool one = !rules_.parallel || !rules_.only.empty();
    switch (rules_.calls) {
      case OutputRules::Calls::kNone:
        return rules_.content != nullptr ? *rules_.content : AnyText();
      case OutputRules::Calls::kRequired:
        return Calls(0, !one);
      case OutputRules::Calls::kAuto:
        break;
    }
    if (rules_.content != nullptr) return Or({Calls(0, !one), *rules_.content});
    return FreeUntilCall(one);
  }

  // Text until a call's opening mark.
  json::value FreeUntilCall(bool one) const {
    const bool section = !spelling_.section_begin.empty();
    std::string_view trigger =
        !format_.section_begin.empty() ? format_.section_begin : format_.call_begin;
    if (trigger.empty()) {
      trigger = spelling_.call_begin.substr(0, spelling_.call_begin.find('@'));
    }
    json::value body = Calls(trigger.size(), section && !one);
    if (const auto token = rules_.dialect->MarkTokenOf(trigger)) {
      return {{"type", "token_dispatch"},
              {"rules", json::array{json::array{*token, std::move(body)}}},
              {"loop", !one}};
    }
    return {{"type", "dispatch"},
            {"rules", json::array{json::array{trigger, std::move(body)}}},
            {"loop", !one}};
  }

  // A thought first: one that is open, or maybe one.
  json::value WithThought(json::value body) const {
    const dialect::ReasoningFormat& thoughts = *rules_.dialect->reasoning;
    const bool open = rules_.reasoning == ReasoningStart::kOpen;
    const auto begin = rules_.dialect->MarkTokenOf(thoughts.begin);
    const auto end = rules_.dialect->MarkTokenOf(thoughts.end);
    const bool tokens = end.has_value() && (open || begin.has_value());
    json::object tag = {{"type", "tag"}};
    tag["begin"] = open ? json::value("") : tokens ? Token(*begin) : json::value(thoughts.begin);
    tag["content"] = tokens ? json::value{{"type", "any_tokens"}} : AnyText();
    tag["end"] = tokens ? Token(*end) : json::value(thoughts.end);
    json::value thought = Sequence({std::move(tag), Space()});
    if (!open) thought = Around("optional", std::move(thought));
    return Sequence({std::move(thought), std::move(body)});
  }

  // ---- Harmony: a stream of messages. The last one's end is a token that ends the output.
  // --------

  json::value Message(std::string_view header, json::value body) const {
    json::array elements;
    Literal(header, &elements);
    elements.push_back(std::move(body));
    return Sequence(std::move(elements));
  }

  // A message to oneself or to the user, with which the output does not end.
  json::value OtherMessage(std::string_view channel) const {
    const auto end = rules_.dialect->MarkTokenOf("<|end|>");
    json::array elements;
    Literal("<|channel|>" + std::string(channel) + "<|message|>", &elements);
    elements.push_back(
        end ? json::value{{"type", "any_tokens"}, {"exclude_tokens", json::array{*end}}}
            : json::value{{"type", "any_text"}, {"excludes", json::array{"<|end|>"}}});
    Literal("<|end|><|start|>assistant", &elements);
    return Sequence(std::move(elements));
  }

  json::value HarmonyCall() const {
    return OneOfTools([&](const Tool& tool) {
      return Message(
          "<|channel|>commentary to=functions." + tool.name + " <|constrain|>json<|message|>",
          Arguments(tool, "json"));
    });
  }

  json::value Harmony() const {
    json::array last;
    if (rules_.calls != OutputRules::Calls::kNone) last.push_back(HarmonyCall());
    if (rules_.calls != OutputRules::Calls::kRequired) {
      last.push_back(Message("<|channel|>final<|message|>",
                             rules_.content != nullptr ? *rules_.content : AnyText()));
    }
    json::value others = Around("star", Or({OtherMessage("analysis"), OtherMessage("commentary")}));
    return Sequence({std::move(others), Or(std::move(last))});
  }

  const OutputRules& rules_;
  const ToolFormat& format_;
  const CallSpelling& spelling_;
};

}  // namespace

OutputGrammar MakeOutputGrammar(const OutputRules& rules) { return GrammarBuilder(rules).Build(); }

bool CallsHaveMarks(const Dialect& dialect) {
  return dialect.tools->shape == dialect::CallShape::kHarmony || dialect.tools->marked();
}

}  // namespace vivace
