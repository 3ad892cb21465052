// TokenizerData from a Hugging Face tokenizer.json.
//
// Understood: byte-level BPE, the pre-tokenizers of text/pretokenizer.h, the NFC normaliser, and
// post-processors that only put BOS and EOS around a text. Anything else is refused by its name:
// ids that are nearly right are worse than none. The file says nothing about which tokens end an
// answer; that is in tokenizer_config.json and generation_config.json.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_data.h"

namespace vivace {

Result<TokenizerData> TokenizerFromJson(std::string_view json);

}  // namespace vivace
