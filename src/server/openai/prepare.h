// From a request's body to what the engine takes: parse, check, render, tokenise. This is the work
// of the prep threads: pure functions of the body and the model, in time linear in the body (BPE
// adds a logarithm), refused early where a prompt cannot fit.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "grammar/grammar.h"
#include "sample/token_constraint.h"
#include "server/openai/served_model.h"
#include "server/params/request_params.h"

namespace vivace::server {

// A chat or completion request, ready for the engine. The input members of `params` are gone: they
// have become `prompts`.
struct PreparedRequest {
  RequestParams params;
  std::vector<std::vector<TokenId>> prompts;
  std::shared_ptr<const CompiledGrammar> grammar;  // what every choice must be; null: anything

  // What the engine is asked for prompt `i`; max_tokens is what the request leaves room for.
  GenerationRequest EngineRequest(size_t i, int32_t max_model_len) const;
  // A new constraint for each choice of one prompt; none without a grammar.
  std::vector<std::unique_ptr<TokenConstraint>> NewConstraints() const;
};

Result<std::unique_ptr<PreparedRequest>> PrepareGeneration(Endpoint endpoint, std::string_view body,
                                                           const ServedModel& model);

struct TextAnswer {
  std::string body;
  std::vector<std::string> ignored;  // members of the request without effect
};

// The answers of /tokenize and /detokenize, in vLLM's shapes.
Result<TextAnswer> AnswerTokenize(std::string_view body, const ServedModel& model);
Result<TextAnswer> AnswerDetokenize(std::string_view body, const ServedModel& model);

}  // namespace vivace::server
