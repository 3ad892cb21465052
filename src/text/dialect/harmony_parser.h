// The parser of gpt-oss's Harmony: an output is messages, each with a channel and maybe a
// recipient. Analysis is thought, a message to a function is a call, all else is content; messages
// of one kind stand on lines of their own. https://cookbook.openai.com/articles/openai-harmony
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/dialect/json_scanner.h"
#include "text/dialect/output_parser.h"

namespace vivace::dialect {

class HarmonyParser : public OutputParser {
 public:
  explicit HarmonyParser(bool calls) : reads_calls_(calls), sink_(&calls_) {}

  void Feed(std::string_view text, std::vector<OutputPiece>* pieces) override;
  void Finish(std::vector<OutputPiece>* pieces) override;
  int32_t calls() const override { return calls_; }
  bool reasoning() const override { return body_ && kind_ == PieceKind::kReasoning; }
  bool ends_with_call() const override { return whole_call_; }

 private:
  void TakeHeader(char c);
  void TakeBody(char c);
  void BeginMessage();
  void Say(std::string_view text);
  void FollowArguments(char c);
  void EndMessage();

  bool reads_calls_;
  int32_t calls_ = 0;
  PieceSink sink_;
  bool body_ = false;  // of a message; else its header, which the prompt has begun
  std::string header_;
  std::string held_;  // the begin of a mark
  PieceKind kind_ = PieceKind::kContent;
  bool said_ = false;                       // the message has text
  std::optional<JsonScanner> arguments_;    // of the last call, while they are JSON and go on
  bool whole_call_ = false;                 // they are complete, and nothing was said since
  bool content_ = false, thought_ = false;  // some was told before this message
};

}  // namespace vivace::dialect
