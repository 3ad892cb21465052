// What the files beside a tokenizer.json say about its tokens: which begin a text, and which end an
// answer. They change no ids of text.
#pragma once

#include <boost/json/object.hpp>

#include "base/result.h"
#include "text/tokenizer_data.h"

namespace vivace {

// tokenizer_config.json: bos_token, eos_token, pad_token (wrong_type). A name that is no token is
// left out, as the file may describe more than this vocabulary has.
Status ApplyTokenizerConfig(const boost::json::object& root, TokenizerData* data);

// generation_config.json: eos_token_id, one or several; each ends an answer.
Status ApplyGenerationConfig(const boost::json::object& root, TokenizerData* data);

}  // namespace vivace
