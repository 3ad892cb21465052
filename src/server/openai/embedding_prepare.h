// From the body of an embedding, rerank or score request to prompts whose hidden states are pooled.
// The work of a prep thread, as prepare.h: pure, in time linear in the body.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "server/openai/served_model.h"
#include "server/params/request_params.h"

namespace vivace::server {

struct PreparedEmbedding {
  RequestParams params;
  // Embeddings: the inputs. Rerank and score: the query or text_1, then the documents or text_2.
  std::vector<std::vector<TokenId>> inputs;
  size_t num_first = 0;  // of rerank and score: those before the documents or text_2
  int32_t dimensions = 0;

  // What the engine is asked for input `i`, which is moved there.
  GenerationRequest TakeEngineRequest(size_t i);
};

// `hidden`: floats that the engine gives for an input; 0: it gives none.
Result<std::unique_ptr<PreparedEmbedding>> PrepareEmbedding(Endpoint endpoint,
                                                            std::string_view body,
                                                            const ServedModel& model,
                                                            int32_t hidden);

}  // namespace vivace::server
