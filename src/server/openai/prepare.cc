#include "server/openai/prepare.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "server/json/json_writer.h"
#include "server/json/strict_json.h"
#include "server/openai/chat_prompt.h"
#include "server/openai/logprobs.h"
#include "server/openai/messages.h"
#include "server/params/table.h"

namespace vivace::server {
namespace {

// OpenAI's default for completions; chat goes on to the end of the context.
constexpr int32_t kDefaultCompletionTokens = 16;

// The DOM must not move once params point into it.
Status ParseBody(Endpoint endpoint, std::string_view text, const ServedModel& model,
                 json::value* body, RequestParams* params) {
  VIVACE_ASSIGN(*body, ParseStrictJson(text));
  VIVACE_ASSIGN(*params, ParseParams(*body, {endpoint, model.vocab}));
  return model.CheckName(params->model);
}

Status CheckLength(const PreparedRequest& request, size_t prompt_tokens, const ServedModel& model) {
  const std::string field = request.params.endpoint == kChat ? "messages" : "prompt";
  if (prompt_tokens == 0) {
    return Fail(ErrorCode::kInvalidArgument, "empty_prompt", field,
                "the prompt is empty; give at least one token");
  }
  const int64_t answer = request.params.wanted_tokens() == 0 ? 0 : 1;
  if (static_cast<int64_t>(prompt_tokens) + answer <= model.max_model_len) return {};
  return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", field,
              "the prompt has {} tokens; this model's context is {} tokens, the answer included",
              prompt_tokens, model.max_model_len);
}

// An answer is built in one piece and its numbers lie in memory until then.
Status CheckLogprobs(const PreparedRequest& request, int32_t max_model_len) {
  if (!request.params.logprobs) return {};
  int64_t positions = 0;
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    const GenerationRequest asked = request.EngineRequest(i, max_model_len);
    positions += asked.sampling.max_tokens;
    if (request.params.echo) positions += static_cast<int64_t>(asked.prompt.size());
  }
  const int64_t entries =
      positions * request.params.n * (1 + int64_t{request.params.top_logprobs.value_or(0)});
  if (entries <= limits::kMaxLogprobEntries) return {};
  return Fail(ErrorCode::kInvalidArgument, "too_many_logprobs", "logprobs",
              "the answer may have {} log-probabilities, alternatives counted; at most {} are "
              "allowed: ask for fewer tokens, choices or alternatives",
              entries, limits::kMaxLogprobEntries);
}

// Compiles what the output must be: the one wait of a prep thread, bounded by the compiler.
Status CompileGrammar(PreparedRequest* request, const ServedModel& model) {
  if (!request->params.grammar) return {};
  const GrammarSpec& spec = *request->params.grammar;
  if (model.grammars == nullptr) {
    return Fail(ErrorCode::kUnsupported, "unsupported_parameter", spec.field,
                "`{}` is not supported by this server", spec.field);
  }
  VIVACE_ASSIGN(request->grammar, model.grammars->Compile(spec));
  return {};
}

// What these routes do takes a prep thread's time, and no engine limit bounds it.
Status CheckTokenizeText(std::string_view text) {
  if (text.size() <= limits::kMaxTokenizeBytes) return {};
  return Fail(ErrorCode::kInvalidArgument, "too_long", "prompt",
              "the text has {} bytes; at most {} are tokenized at once", text.size(),
              limits::kMaxTokenizeBytes);
}

Result<std::vector<TokenId>> TokenizePrompt(const Prompt& prompt, const RequestParams& params,
                                            const ServedModel& model) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) return *ids;
  const std::string& text = std::get<std::string>(prompt);
  VIVACE_RETURN_IF_ERROR(CheckTextFits(text, "prompt", model));
  return model.tokenizer->Encode(text,
                                 {.add_special_tokens = params.add_special_tokens.value_or(true)});
}

void WriteIdArray(std::string_view key, std::span<const TokenId> ids, JsonWriter* w) {
  w->Key(key);
  w->BeginArray();
  for (const TokenId id : ids) w->Int(id);
  w->EndArray();
}

}  // namespace

GenerationRequest PreparedRequest::EngineRequest(size_t i, int32_t max_model_len) const {
  GenerationRequest request;
  request.prompt = prompts[i];
  request.sampling = params.sampling;
  request.num_choices = params.n;
  request.priority = params.priority;
  request.cache_salt = params.cache_salt;
  const auto room = static_cast<int32_t>(static_cast<int64_t>(max_model_len) -
                                         static_cast<int64_t>(request.prompt.size()));
  const int32_t by_default = params.endpoint == kChat ? room : kDefaultCompletionTokens;
  request.sampling.max_tokens = std::min(params.wanted_tokens().value_or(by_default), room);
  // The client may ask for more than there is room for; the rest of its wish stands.
  request.sampling.min_tokens = std::min(request.sampling.min_tokens, request.sampling.max_tokens);
  if (params.echo && (params.logprobs || request.sampling.max_tokens == 0)) {
    request.sampling.prompt_logprobs = std::max(params.sampling.logprobs, 0);
  }
  return request;
}

std::vector<std::unique_ptr<TokenConstraint>> PreparedRequest::NewConstraints() const {
  std::vector<std::unique_ptr<TokenConstraint>> constraints;
  for (int32_t i = 0; grammar != nullptr && i < params.n; ++i) {
    constraints.push_back(
        grammar->NewConstraint({.begin_after = -1, .jump_forward = !params.logprobs}));
  }
  return constraints;
}

Result<std::unique_ptr<PreparedRequest>> PrepareGeneration(Endpoint endpoint, std::string_view body,
                                                           const ServedModel& model) {
  auto request = std::make_unique<PreparedRequest>();
  RequestParams& params = request->params;
  json::value dom;
  VIVACE_RETURN_IF_ERROR(ParseBody(endpoint, body, model, &dom, &params));
  if (endpoint == kChat) {
    VIVACE_RETURN_IF_ERROR(ReportUnknownMembers(&params));
    VIVACE_ASSIGN(auto prompt, ChatPrompt(params, model));
    request->prompts.push_back(std::move(prompt));
    if (params.tools != nullptr && !model.chat_template->uses_tools()) {
      params.ignored.emplace_back("tools");
    }
    if (params.reasoning_effort != nullptr && !model.chat_template->Reads("reasoning_effort")) {
      params.ignored.emplace_back("reasoning_effort");
    }
  }
  for (const Prompt& prompt : params.prompts) {
    VIVACE_ASSIGN(auto ids, TokenizePrompt(prompt, params, model));
    request->prompts.push_back(std::move(ids));
  }
  for (const auto& prompt : request->prompts) {
    VIVACE_RETURN_IF_ERROR(CheckLength(*request, prompt.size(), model));
  }
  VIVACE_RETURN_IF_ERROR(CheckLogprobs(*request, model.max_model_len));
  VIVACE_RETURN_IF_ERROR(CompileGrammar(request.get(), model));
  params.prompts = {};
  params.messages = nullptr;
  params.tools = nullptr;
  params.documents = nullptr;
  params.reasoning_effort = nullptr;
  params.chat_template_kwargs = nullptr;
  return request;
}

Result<TextAnswer> AnswerTokenize(std::string_view text, const ServedModel& model) {
  json::value body;
  RequestParams params;
  VIVACE_RETURN_IF_ERROR(ParseBody(kTokenize, text, model, &body, &params));
  std::vector<TokenId> ids;
  if (params.messages != nullptr) {
    VIVACE_RETURN_IF_ERROR(ReportUnknownMembers(&params));
    VIVACE_ASSIGN(ids, ChatPrompt(params, model));
  } else {
    const auto& prompt = std::get<std::string>(params.prompts.front());
    VIVACE_RETURN_IF_ERROR(CheckTokenizeText(prompt));
    ids = model.tokenizer->Encode(prompt,
                                  {.add_special_tokens = params.add_special_tokens.value_or(true)});
  }
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.KeyInt("count", static_cast<int64_t>(ids.size()));
  w.KeyInt("max_model_len", model.max_model_len);
  WriteIdArray("tokens", ids, &w);
  w.Key("token_strs");
  if (params.return_token_strs) {
    const LogprobStyle style{model.tokenizer.get(), 0, false};
    w.BeginArray();
    for (const TokenId id : ids) w.String(TokenName(style, id));
    w.EndArray();
  } else {
    w.Null();
  }
  w.EndObject();
  return TextAnswer{std::move(out), std::move(params.ignored)};
}

Result<TextAnswer> AnswerDetokenize(std::string_view text, const ServedModel& model) {
  json::value body;
  RequestParams params;
  VIVACE_RETURN_IF_ERROR(ParseBody(kDetokenize, text, model, &body, &params));
  if (params.tokens.size() > limits::kMaxDetokenizeTokens) {
    return Fail(ErrorCode::kInvalidArgument, "too_long", "tokens",
                "there are {} tokens; at most {} are turned into text at once",
                params.tokens.size(), limits::kMaxDetokenizeTokens);
  }
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.KeyString("prompt", model.tokenizer->Decode(params.tokens, /*skip_special=*/false));
  w.EndObject();
  return TextAnswer{std::move(out), std::move(params.ignored)};
}

}  // namespace vivace::server
