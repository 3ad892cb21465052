// What every rendering for a model begins with.
#pragma once

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace vivace {

// The texts of the model's first and last tokens, and the local time. Any thread.
ChatRenderInput RenderInputFor(const Tokenizer& tokenizer);

}  // namespace vivace
