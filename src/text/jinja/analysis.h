// Facts about a template that can be read off its tree.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace vivace::jinja {

// Does any expression read the variable `name`?
bool ReadsVariable(const Ast& ast, std::string_view name);

// Does any expression ask an object for the member `name`: x.name, x['name'], 'name' in x?
bool ReadsMember(const Ast& ast, std::string_view name);

// Does the template walk over message content as a list of parts? True when a `for` runs over
// something.content, something['content'], or a variable set from one or named `content`; or when
// one is indexed by a number and the part's `type` or `text` is taken.
bool IteratesContent(const Ast& ast);

}  // namespace vivace::jinja
