// For the dialects' tests: templates that carry the published marks, a tokenizer in which marks are
// control tokens or not, and outputs run through a parser.
#pragma once

#include <boost/json/parse.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/dialect/dialect.h"
#include "text/dialect/output_parser.h"
#include "text/dialect/tool_set.h"

namespace vivace::dialect {

// All bytes, `control` as control tokens from id 256 on, and one that ends outputs.
inline std::shared_ptr<const Tokenizer> ByteTokenizer(const std::vector<std::string>& control) {
  TokenizerData data;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    data.tokens.push_back(AlphabetFromBytes({&c, 1}));
  }
  data.types.assign(256, TokenType::kNormal);
  for (const std::string& token : control) {
    data.tokens.push_back(token);
    data.types.push_back(TokenType::kControl);
  }
  data.eos = static_cast<TokenId>(data.tokens.size());
  data.tokens.push_back("<eos>");
  data.types.push_back(TokenType::kControl);
  auto tokenizer = Tokenizer::Create(std::move(data));
  VIVACE_CHECK(tokenizer.has_value());
  return std::move(*tokenizer);
}

// A template that reads tools and mentions `marks`.
inline ChatTemplate TemplateWith(std::string_view marks) {
  std::string text(marks);
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '\\');
  }
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\\n");
  }
  auto parsed = ChatTemplate::Parse("{% if tools %}{{ '" + text +
                                    "' }}{% endif %}{{ messages[-1].content }}");
  VIVACE_CHECK(parsed.has_value());
  return std::move(*parsed);
}

inline Dialect DialectOf(std::string_view marks, const std::vector<std::string>& control = {}) {
  const ChatTemplate chat_template = TemplateWith(marks);
  return DetectDialect(&chat_template, *ByteTokenizer(control));
}

// weather(city: string, days: integer, tags: array), now(): no parameters.
inline std::shared_ptr<const ToolSet> TestTools() {
  auto tools = std::make_shared<ToolSet>();
  tools->tools.push_back({"weather", boost::json::parse(R"({"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"},
      "note": {"type": ["string", "null"]}, "kind": {"$ref": "#/$defs/kind"}},
      "required": ["city"], "$defs": {"kind": {"enum": ["a", "b"]}}})"),
                          false});
  tools->tools.push_back({"now", nullptr, false});
  return tools;
}

// What a reader of an answer has in the end.
struct Told {
  struct Call {
    std::string name, arguments;
    bool operator==(const Call&) const = default;
  };
  std::string content, reasoning;
  std::vector<Call> calls;
  std::vector<OutputPiece> pieces;  // neighbours of one kind joined
  bool ends_with_call = false;

  void Add(std::vector<OutputPiece> news) {
    for (OutputPiece& piece : news) {
      VIVACE_CHECK(piece.kind == PieceKind::kToolCall || !piece.text.empty());
      switch (piece.kind) {
        case PieceKind::kContent:
          content += piece.text;
          break;
        case PieceKind::kReasoning:
          reasoning += piece.text;
          break;
        case PieceKind::kToolCall:
          VIVACE_CHECK(piece.call == static_cast<int32_t>(calls.size()));
          calls.push_back({piece.text, ""});
          break;
        case PieceKind::kToolArguments:
          VIVACE_CHECK(piece.call + 1 == static_cast<int32_t>(calls.size()));
          calls.back().arguments += piece.text;
          break;
      }
      const bool joins = !pieces.empty() && piece.kind != PieceKind::kToolCall &&
                         pieces.back().kind == piece.kind && pieces.back().call == piece.call;
      if (joins) {
        pieces.back().text += piece.text;
      } else {
        pieces.push_back(std::move(piece));
      }
    }
  }
};

// Feeds `text` cut at random places (`cut` 0: whole; 1: byte by byte; else a seed).
inline Told Parse(const Dialect& dialect, std::string_view text, uint32_t cut = 0,
                  ReasoningStart start = ReasoningStart::kOptional,
                  std::shared_ptr<const ToolSet> tools = TestTools()) {
  const auto parser = OutputParser::New(dialect, start, std::move(tools));
  Told told;
  uint32_t state = cut;
  while (!text.empty()) {
    state = state * 1664525u + 1013904223u;
    const size_t size = cut == 0   ? text.size()
                        : cut == 1 ? 1
                                   : std::min<size_t>(text.size(), 1 + (state >> 24) % 9);
    std::vector<OutputPiece> pieces;
    parser->Feed(text.substr(0, size), &pieces);
    told.Add(std::move(pieces));
    text.remove_prefix(size);
  }
  std::vector<OutputPiece> pieces;
  parser->Finish(&pieces);
  told.Add(std::move(pieces));
  told.ends_with_call = parser->ends_with_call();
  VIVACE_CHECK(parser->calls() == static_cast<int32_t>(told.calls.size()));
  return told;
}

}  // namespace vivace::dialect
