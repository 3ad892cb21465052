// Refuses filters and tests of unknown names where jinja2 does so when it compiles a template:
// everywhere but inside `if` statements and inline conditions, whose unknown names are an error
// only when they are reached (so that a template can ask `'x' is filter` first).
#pragma once

#include <cstdint>

#include "text/jinja/ast.h"

namespace vivace::jinja {

// Throws TemplateError; `line` is then the line of the name.
void CheckNames(const Ast& ast, uint32_t& line);

}  // namespace vivace::jinja
