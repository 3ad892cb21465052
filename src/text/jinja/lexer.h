// Splits a template into tokens exactly as jinja2 does with trim_blocks and lstrip_blocks on and
// keep_trailing_newline off. Stores the normalised source and decoded literals in `ast`.
// Linear in the source. Throws TemplateError.
#pragma once

#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/token.h"

namespace vivace::jinja {

std::vector<Token> Tokenize(std::string_view source, Ast& ast);

}  // namespace vivace::jinja
