// The pieces that answers are written from, by their protocol-side names.
#pragma once

#include "text/dialect/output_piece.h"

namespace vivace::server {

using vivace::OutputPiece;
using vivace::PieceKind;

}  // namespace vivace::server
