// TokenizerData from a Hugging Face tokenizer.json.
//
// Understood: BPE, unigram, word-piece and word-level models, the steps that
// tokenizer_json_steps.cc lists, and post-processors that only put tokens around a text. Anything
// else is refused by its name: ids that are nearly right are worse than none. The file says nothing
// about which tokens end an answer; that is in tokenizer_config.json and generation_config.json.
// Strings are copied.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_data.h"

namespace vivace {

Result<TokenizerData> TokenizerFromJson(std::string_view json);

}  // namespace vivace
