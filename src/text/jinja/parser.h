// Builds the Ast of a template. Accepts jinja2's grammar with the loop-control and Hugging Face's
// `generation` tags; refuses what would reach outside the template (include, import, extends, …).
// Nesting is bounded by limits::kTemplateDepth. Throws TemplateError.
#pragma once

#include <memory>

#include "text/jinja/ast.h"

namespace vivace::jinja {

// `line` is the line reached, for the message, also when this throws.
std::unique_ptr<Ast> ParseTemplate(std::string_view source, uint32_t& line);

}  // namespace vivace::jinja
