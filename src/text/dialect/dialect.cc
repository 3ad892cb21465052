#include "text/dialect/dialect.h"

#include <algorithm>

namespace vivace {
namespace {

using dialect::CallShape;
using dialect::ReasoningFormat;
using dialect::ToolFormat;

// Control tokens that formats write inside their marks or beside them.
constexpr std::string_view kInnerMarks[] = {"<|start|>",
                                            "<|channel|>",
                                            "<|message|>",
                                            "<|constrain|>",
                                            "<|end|>",
                                            "<|call|>",
                                            "<|return|>",
                                            "[ARGS]",
                                            "[CALL_ID]",
                                            "<|\"|>",
                                            "<escape>",
                                            "<｜tool▁sep｜>",
                                            "<arg_key>",
                                            "</arg_key>",
                                            "<arg_value>",
                                            "</arg_value>",
                                            "<|tool_call_argument_begin|>",
                                            "<|python_start|>",
                                            "<|python_end|>",
                                            "<|START_RESPONSE|>",
                                            "<|END_RESPONSE|>",
                                            "<|START_TEXT|>",
                                            "<|END_TEXT|>"};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

const ToolFormat* FindToolFormat(std::string_view source) {
  for (const ToolFormat& format : dialect::ToolFormats()) {
    const auto& marks = format.template_marks;
    if (Has(source, marks[0]) && Has(source, marks[1])) return &format;
  }
  return nullptr;
}

std::optional<TokenId> SingleToken(const Tokenizer& tokenizer, std::string_view text) {
  if (const auto control = tokenizer.FindSpecial(text)) return control;
  const auto ids = tokenizer.Encode(text, {.add_special_tokens = false, .parse_special = false});
  if (ids.size() != 1 || tokenizer.TokenBytes(ids[0]) != text) return std::nullopt;
  return ids[0];
}

const ReasoningFormat* FindReasoningFormat(std::string_view source, const Tokenizer& tokenizer) {
  for (const ReasoningFormat& format : dialect::ReasoningFormats()) {
    const std::string_view begin = dialect::TrimmedMark(format.begin);
    const bool mentioned = Has(source, begin) || (format.known_by_end && Has(source, format.end));
    const bool known = SingleToken(tokenizer, begin) && SingleToken(tokenizer, format.end);
    if (mentioned || known) return &format;
  }
  return nullptr;
}

// The control tokens in `text`, which may hold several.
void CollectTokens(std::string_view text, const Tokenizer& tokenizer,
                   std::vector<Dialect::MarkToken>* tokens) {
  if (text.empty()) return;
  for (const TokenId id : tokenizer.Encode(text, {.add_special_tokens = false})) {
    if (!tokenizer.IsSpecial(id)) continue;
    const std::string_view bytes = tokenizer.TokenBytes(id);
    if (!bytes.empty() && Has(text, bytes)) tokens->push_back({std::string(bytes), id});
  }
}

std::vector<Dialect::MarkToken> FindMarkTokens(const Dialect& dialect, const Tokenizer& tokenizer) {
  std::vector<Dialect::MarkToken> tokens;
  const ToolFormat& format = *dialect.tools;
  for (const std::string_view mark : {format.section_begin, format.section_end, format.call_begin,
                                      format.call_end, format.other_begin}) {
    CollectTokens(mark, tokenizer, &tokens);
  }
  if (dialect.reasoning != nullptr) {
    CollectTokens(dialect.reasoning->begin, tokenizer, &tokens);
    CollectTokens(dialect.reasoning->end, tokenizer, &tokens);
  }
  for (const std::string_view mark : kInnerMarks) {
    if (const auto id = tokenizer.FindSpecial(mark)) tokens.push_back({std::string(mark), *id});
  }
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  tokens.erase(std::unique(tokens.begin(), tokens.end(),
                           [](const auto& a, const auto& b) { return a.id == b.id; }),
               tokens.end());
  return tokens;
}

}  // namespace

std::optional<TokenId> Dialect::MarkTokenOf(std::string_view mark) const {
  const auto token = std::find_if(mark_tokens.begin(), mark_tokens.end(),
                                  [&](const MarkToken& t) { return t.text == mark; });
  if (token == mark_tokens.end()) return std::nullopt;
  return token->id;
}

Dialect DetectDialect(const ChatTemplate* chat_template, const Tokenizer& tokenizer) {
  Dialect found;
  if (chat_template == nullptr) return found;
  const std::string_view source = chat_template->source();
  const ToolFormat* tools = FindToolFormat(source);
  found.tools = tools != nullptr ? tools : &dialect::GenericFormat();
  if (!chat_template->uses_tools() && found.tools->shape != CallShape::kHarmony) {
    found.tools = &dialect::GenericFormat();
    found.describes_tools = true;
  }
  found.reasoning = FindReasoningFormat(source, tokenizer);
  if (found.reasoning != nullptr) {
    found.reasoning_begin_token = SingleToken(tokenizer, found.reasoning->begin).value_or(-1);
    found.reasoning_end_token = SingleToken(tokenizer, found.reasoning->end).value_or(-1);
  }
  found.mark_tokens = FindMarkTokens(found, tokenizer);
  return found;
}

ReasoningStart FindReasoningStart(const Dialect& dialect, const RenderedPrompt& prompt,
                                  bool continues_message) {
  if (dialect.reasoning == nullptr) return ReasoningStart::kNone;
  size_t from = 0;
  for (const Segment& segment : prompt.segments) {
    if (segment.trusted) continue;
    from = continues_message ? segment.begin : segment.end;
  }
  const std::string_view tail = std::string_view(prompt.text).substr(from);
  const size_t begin = tail.rfind(dialect::TrimmedMark(dialect.reasoning->begin));
  const size_t end = tail.rfind(dialect.reasoning->end);
  if (begin == std::string_view::npos && end == std::string_view::npos) {
    return ReasoningStart::kOptional;
  }
  const bool open =
      begin != std::string_view::npos && (end == std::string_view::npos || end < begin);
  return open ? ReasoningStart::kOpen : ReasoningStart::kNone;
}

}  // namespace vivace
