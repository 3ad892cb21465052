// What an output says, told apart: the common tongue of those who read a model's text (dialects)
// and those who write answers (OpenAI's chat, responses, Anthropic's messages).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vivace {

enum class PieceKind : uint8_t {
  kContent,        // text for the reader
  kReasoning,      // thinking, without its marks
  kToolCall,       // a call begins: `text` is the function's name, `id` the call's
  kToolArguments,  // more of the JSON text of call `call`'s arguments
};

// Pieces come in the order of the output; joined, those of one kind (and call) are the whole.
struct OutputPiece {
  PieceKind kind = PieceKind::kContent;
  int32_t call = -1;  // of the choice's tool calls, from 0
  std::string text;
  std::string id;

  bool operator==(const OutputPiece&) const = default;
};

// Appends to a list of pieces; neighbours of one kind become one. Ids are left to the caller.
class PieceSink {
 public:
  explicit PieceSink(int32_t* calls) : calls_(calls) {}
  void set_pieces(std::vector<OutputPiece>* pieces) { pieces_ = pieces; }

  void Content(std::string_view text) { Append(PieceKind::kContent, -1, text); }
  void Reasoning(std::string_view text) { Append(PieceKind::kReasoning, -1, text); }
  void BeginCall(std::string name) {
    pieces_->push_back({PieceKind::kToolCall, *calls_, std::move(name), {}});
    *calls_ += 1;
  }
  // Of the call that began last.
  void Arguments(std::string_view json) { Append(PieceKind::kToolArguments, *calls_ - 1, json); }
  int32_t calls() const { return *calls_; }

 private:
  void Append(PieceKind kind, int32_t call, std::string_view text) {
    if (text.empty()) return;
    if (pieces_->empty() || pieces_->back().kind != kind || pieces_->back().call != call) {
      pieces_->push_back({kind, call, {}, {}});
    }
    pieces_->back().text += text;
  }

  int32_t* calls_;
  std::vector<OutputPiece>* pieces_ = nullptr;
};

}  // namespace vivace
