// Log-probabilities in the two shapes of OpenAI's API.
//
// Values are of the raw model distribution; -inf is written as -9999, so that the answer stays
// JSON. A token's name is its text; where its bytes are not valid UTF-8 alone, "bytes:\xf0\x9f" (as
// OpenAI names them). Appends to a buffer; no state; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/ids.h"
#include "engine/request.h"
#include "sched/step_plan.h"
#include "server/json/json_writer.h"
#include "text/tokenizer.h"

namespace vivace::server {

// One position. `top` is borrowed from the request's streams.
struct LogprobEntry {
  TokenId token = -1;
  bool has_value = true;  // false: a prompt's first token
  float logprob = 0.0f;
  std::span<const TokenLogprob> top;
  int64_t text_offset = 0;  // of the token in the choice's text, in code points
  // Of a text told apart: which stretch of content it belongs to; -1: to thoughts or calls.
  int32_t stretch = 0;
};

struct LogprobStyle {
  const Tokenizer* tokenizer = nullptr;
  int32_t top = 0;             // alternatives asked for
  bool tokens_as_ids = false;  // "token_id:N" for names
};

std::string TokenName(const LogprobStyle& style, TokenId token);

// [{token,logprob,bytes,top_logprobs}], the entries that the next one and responses list. A drawn
// token that is not among the `top` most likely takes the last one's place.
void WriteLogprobList(const LogprobStyle& style, std::span<const LogprobEntry> entries,
                      JsonWriter* writer);

// {"content":[{token,logprob,bytes,top_logprobs}],"refusal":null}.
void WriteChatLogprobs(const LogprobStyle& style, std::span<const LogprobEntry> entries,
                       JsonWriter* writer);

// {"tokens","token_logprobs","top_logprobs","text_offset"}. A drawn token that is not among the
// `top` most likely is added to them.
void WriteCompletionLogprobs(const LogprobStyle& style, std::span<const LogprobEntry> entries,
                             JsonWriter* writer);

// vLLM's prompt_logprobs: null for the first token, then {"ID":{logprob,rank,decoded_token}} of the
// token that stands there and the `style.top` most likely ones.
void WritePromptLogprobs(const LogprobStyle& style, const PromptLogprobs& logprobs,
                         JsonWriter* writer);

}  // namespace vivace::server
