// The pieces that answers are written from, by their protocol-side names.
#pragma once

#include "text/dialect/output_piece.h"

namespace vivace::server {

using vivace::OutputPiece;
using vivace::PieceKind;

// Of a call: its beginning or its arguments.
inline bool IsTool(PieceKind kind) {
  return kind == PieceKind::kToolCall || kind == PieceKind::kToolArguments;
}

}  // namespace vivace::server
