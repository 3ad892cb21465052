// The dialect of a model: which formats it writes tool calls and thoughts in, found from its chat
// template and its vocabulary. Immutable; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/chat_template.h"
#include "text/dialect/formats.h"
#include "text/jinja/template.h"
#include "text/tokenizer.h"

namespace vivace {

// How an output begins.
enum class ReasoningStart : uint8_t {
  kNone,      // no thoughts, or the prompt has closed them already
  kOptional,  // the model may open a thought
  kOpen,      // the prompt ends inside a thought
};

struct Dialect {
  const dialect::ToolFormat* tools = &dialect::NoToolFormat();
  const dialect::ReasoningFormat* reasoning = nullptr;  // null: none
  // The template does not read `tools`: they are described in a system message instead, and the
  // format is the generic one.
  bool describes_tools = false;

  // A mark that is one control token of the vocabulary. Outputs leave such tokens' text out, so the
  // detokeniser must be told to show these to the parser.
  struct MarkToken {
    std::string text;
    TokenId id = -1;
  };
  std::vector<MarkToken> mark_tokens;  // by id
  // The one token that begins a thought and the one that ends it, whatever their kind; -1 where it
  // is several.
  TokenId reasoning_begin_token = -1;
  TokenId reasoning_end_token = -1;

  // Output needs a parser even where the request has no tools.
  bool always_parses() const {
    return reasoning != nullptr || tools->shape == dialect::CallShape::kHarmony;
  }
  std::optional<TokenId> MarkTokenOf(std::string_view mark) const;
};

// For a model without a template: plain text.
Dialect DetectDialect(const ChatTemplate* chat_template, const Tokenizer& tokenizer);

// How the output of a rendered prompt begins. Only the template's own text counts behind the last
// byte of a request's, so that no message can pretend; where the request's last message is itself
// continued, that message counts.
ReasoningStart FindReasoningStart(const Dialect& dialect, const RenderedPrompt& prompt,
                                  bool continues_message);

}  // namespace vivace
