// jinja2 binds names when it compiles: a block that assigns a name before it reads it has a
// variable of its own from the start, and a request variable of the same name is hidden in the
// whole block, before the assignment and in blocks inside it. This pass finds those names, so that
// templates that (often unknowingly) depend on it render the same.
#pragma once

#include "text/jinja/ast.h"

namespace vivace::jinja {

// Fills Ast::masked, Stmt::masked and Stmt::masked_otherwise. Linear, but for look-ups of enclosing
// blocks; recursion is bounded by the parser's nesting limit.
void AnalyzeScopes(Ast& ast);

}  // namespace vivace::jinja
