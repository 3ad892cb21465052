// A chat template in a file of its own: for `serve --chat-template` and `inspect --check`.
#pragma once

#include <string>

#include "base/result.h"
#include "text/chat_template.h"

namespace vivace::cli {

// Reads at most limits::kTemplateSourceBytes and one more, and parses. Errors begin with the path.
Result<ChatTemplate> LoadTemplate(const std::string& path);

}  // namespace vivace::cli
