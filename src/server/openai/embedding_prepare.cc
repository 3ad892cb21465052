#include "server/openai/embedding_prepare.h"

#include <utility>

#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/openai/prepare.h"
#include "server/params/table.h"

namespace vivace::server {
namespace {

Result<std::vector<TokenId>> Tokenize(std::string_view text, std::string_view field,
                                      const RequestParams& params, const ServedModel& model) {
  VIVACE_RETURN_IF_ERROR(CheckPromptText(text, field, params, model));
  return model.tokenizer->Encode(text,
                                 {.add_special_tokens = params.add_special_tokens.value_or(true)});
}

Status CheckLength(size_t tokens, std::string_view field, const ServedModel& model) {
  if (tokens == 0) {
    return Fail(ErrorCode::kInvalidArgument, "empty_prompt", std::string(field),
                "`{}` has an entry without a token; there is nothing to embed in it", field);
  }
  if (tokens <= static_cast<size_t>(model.max_model_len)) return {};
  return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", std::string(field),
              "`{}` has an entry of {} tokens; this model's context is {} tokens: shorten it, or "
              "send truncate_prompt_tokens",
              field, tokens, model.max_model_len);
}

Status AddInput(std::vector<TokenId> ids, std::string_view field, const ServedModel& model,
                PreparedEmbedding* request) {
  TruncatePrompt(model.max_model_len, &ids, &request->params);
  VIVACE_RETURN_IF_ERROR(CheckLength(ids.size(), field, model));
  request->inputs.push_back(std::move(ids));
  return {};
}

Status AddTexts(const std::vector<std::string>& texts, std::string_view field,
                const ServedModel& model, PreparedEmbedding* request) {
  for (const std::string& text : texts) {
    VIVACE_ASSIGN(auto ids, Tokenize(text, field, request->params, model));
    VIVACE_RETURN_IF_ERROR(AddInput(std::move(ids), field, model, request));
  }
  return {};
}

Status AddPrompts(const ServedModel& model, PreparedEmbedding* request) {
  for (Prompt& prompt : request->params.prompts) {
    std::vector<TokenId> ids;
    if (auto* given = std::get_if<std::vector<TokenId>>(&prompt)) {
      ids = std::move(*given);
    } else {
      VIVACE_ASSIGN(ids, Tokenize(std::get<std::string>(prompt), "input", request->params, model));
    }
    VIVACE_RETURN_IF_ERROR(AddInput(std::move(ids), "input", model, request));
  }
  request->params.prompts = {};
  return {};
}

Status ChooseDimensions(int32_t hidden, PreparedEmbedding* request) {
  if (hidden == 0) {
    return Fail(ErrorCode::kUnsupported, "no_embeddings", "", "this model gives no embeddings");
  }
  request->dimensions = request->params.dimensions.value_or(hidden);
  if (request->dimensions > hidden) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_value", "dimensions",
                "`dimensions` is {}; this model's embeddings have {}", request->dimensions, hidden);
  }
  const auto values =
      static_cast<uint64_t>(request->inputs.size()) * static_cast<uint64_t>(request->dimensions);
  if (request->params.endpoint != kEmbeddings || values <= limits::kMaxEmbeddingValues) return {};
  return Fail(ErrorCode::kInvalidArgument, "too_long", "input",
              "the answer would have {} numbers; at most {} are written at once: send fewer "
              "inputs, or fewer dimensions",
              values, limits::kMaxEmbeddingValues);
}

}  // namespace

GenerationRequest PreparedEmbedding::TakeEngineRequest(size_t i) {
  GenerationRequest request;
  request.prompt = std::move(inputs[i]);
  request.pooling = params.pooling;
  request.priority = params.priority;
  request.cache_salt = params.cache_salt;
  return request;
}

Result<std::unique_ptr<PreparedEmbedding>> PrepareEmbedding(Endpoint endpoint,
                                                            std::string_view body,
                                                            const ServedModel& model,
                                                            int32_t hidden) {
  auto request = std::make_unique<PreparedEmbedding>();
  RequestParams& params = request->params;
  VIVACE_ASSIGN(const json::value dom, ParseStrictJson(body));
  VIVACE_ASSIGN(params, ParseParams(dom, {endpoint, model.vocab}));
  VIVACE_RETURN_IF_ERROR(model.CheckName(params.model));
  const bool ranks = endpoint == kRerank;
  VIVACE_RETURN_IF_ERROR(AddPrompts(model, request.get()));
  VIVACE_RETURN_IF_ERROR(
      AddTexts(params.first_texts, ranks ? "query" : "text_1", model, request.get()));
  request->num_first = request->inputs.size();
  VIVACE_RETURN_IF_ERROR(
      AddTexts(params.second_texts, ranks ? "documents" : "text_2", model, request.get()));
  VIVACE_RETURN_IF_ERROR(ChooseDimensions(hidden, request.get()));
  VIVACE_RETURN_IF_ERROR(CheckStrict(params));
  params.first_texts = {};
  if (!ranks || !params.return_documents) params.second_texts = {};
  return request;
}

}  // namespace vivace::server
