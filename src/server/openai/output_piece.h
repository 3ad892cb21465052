// What an output says, told apart: the common tongue of those who read a model's text (dialects)
// and those who write answers (OpenAI's chat, responses, Anthropic's messages).
#pragma once

#include <cstdint>
#include <string>

namespace vivace::server {

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
};

}  // namespace vivace::server
