// From a request's body to what the engine takes: parse, check, render, tokenise. This is the work
// of the prep threads: pure functions of the body and the model, in time linear in the body (BPE
// adds a logarithm), refused early where a prompt cannot fit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "server/openai/output_constraints.h"
#include "server/openai/output_reading.h"
#include "server/openai/served_model.h"
#include "server/params/request_params.h"

namespace vivace::server {

// A chat or completion request, ready for the engine. The input members of `params` are gone: they
// have become the prompts of `requests`.
struct PreparedRequest {
  RequestParams params;
  // What the engine is asked, one for each prompt, all but its limits of time.
  std::vector<GenerationRequest> requests;
  OutputReading reading;          // of every output
  OutputConstraints constraints;  // of every output

  // How prompt `i` is answered; max_tokens is what the request leaves room for.
  SamplingParams Sampling(size_t i, int32_t max_model_len) const;
};

// What of a request counts before it is prepared.
struct EarlyWishes {
  std::optional<int64_t> deadline_ms;
  std::optional<int64_t> max_queue_ms;
  std::string request_id;
};

// `early`: filled as soon as the body is read, also where what follows fails; may be null.
Result<std::unique_ptr<PreparedRequest>> PrepareGeneration(Endpoint endpoint, std::string_view body,
                                                           const ServedModel& model,
                                                           EarlyWishes* early = nullptr);

// Cuts a prompt as truncate_prompt_tokens says, and notes how much; `room`: tokens that fit.
void TruncatePrompt(int32_t room, std::vector<TokenId>* ids, RequestParams* params);
// A text that will be tokenised: refused where it cannot fit, or where it is cut, where that would
// take too long.
Status CheckPromptText(std::string_view text, std::string_view field, const RequestParams& params,
                       const ServedModel& model);

struct TextAnswer {
  std::string body;
  Reports reports;
  std::string request_id = {};  // the client's own; empty: none
};

// The answers of /tokenize and /detokenize, in vLLM's shapes.
Result<TextAnswer> AnswerTokenize(std::string_view body, const ServedModel& model);
Result<TextAnswer> AnswerDetokenize(std::string_view body, const ServedModel& model);

// What a chat request would be answered from, without the answer: vLLM's /render
// ({"token_ids","prompt",...}) and llama-server's /apply-template ({"prompt"}). What does not shape
// a prompt is reported.
Result<TextAnswer> AnswerRender(std::string_view body, const ServedModel& model);
Result<TextAnswer> AnswerApplyTemplate(std::string_view body, const ServedModel& model);

// Anthropic's /v1/messages/count_tokens: {"input_tokens"}.
Result<TextAnswer> AnswerCountTokens(std::string_view body, const ServedModel& model);

}  // namespace vivace::server
