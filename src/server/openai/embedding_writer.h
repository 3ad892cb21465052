// The JSON of /v1/embeddings (OpenAI's shape), /v1/rerank (Jina's and Cohere's) and /v1/score
// (vLLM's). Knows shapes, not requests. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/answer_writer.h"
#include "server/params/request_params.h"

namespace vivace::server {

// One element of an answer's "data": written as soon as it is there, so that no answer takes long
// at its end.
std::string EmbeddingItem(size_t index, std::span<const float> embedding, bool base64);

// `params`: what was ignored or cut is noted.
std::string EmbeddingsAnswer(const AnswerIdentity& identity, std::span<const std::string> items,
                             int64_t tokens, const RequestParams& params);

struct RankedDocument {
  size_t index = 0;  // in the request
  float score = 0;
};

// `ranked`: best first. `params.second_texts`: the documents, if they are returned.
std::string RerankAnswer(const AnswerIdentity& identity, std::span<const RankedDocument> ranked,
                         int64_t tokens, const RequestParams& params);

std::string ScoreAnswer(const AnswerIdentity& identity, std::span<const float> scores,
                        int64_t tokens, const RequestParams& params);

}  // namespace vivace::server
