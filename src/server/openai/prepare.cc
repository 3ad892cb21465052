#include "server/openai/prepare.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/limits.h"
#include "server/json/json_writer.h"
#include "server/json/strict_json.h"
#include "server/openai/chat_prompt.h"
#include "server/openai/logprobs.h"
#include "server/openai/output_rules.h"
#include "server/params/conversation.h"
#include "server/params/readers.h"
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

Status CheckLength(const RequestParams& params, size_t prompt_tokens, const ServedModel& model) {
  const std::string field(InputName(params.endpoint));
  if (prompt_tokens == 0) {
    return Fail(ErrorCode::kInvalidArgument, "empty_prompt", field,
                "the prompt is empty; give at least one token");
  }
  const int64_t answer = params.wanted_tokens() == 0 ? 0 : 1;
  if (static_cast<int64_t>(prompt_tokens) + answer <= model.max_model_len) return {};
  return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", field,
              "the prompt has {} tokens; this model's context is {} tokens, the answer included",
              prompt_tokens, model.max_model_len);
}

// As vLLM makes them: a word as the output's beginning and after a space.
void TokenizeBadWords(const ServedModel& model, RequestParams* params) {
  auto& runs = params->sampling.bad_words;
  for (const std::string& word : params->bad_words) {
    const std::string bare = word.substr(std::min(word.find_first_not_of(' '), word.size()));
    std::vector<TokenId> first;
    for (const std::string& text : {bare, " " + bare}) {
      std::vector<TokenId> ids = model.tokenizer->Encode(text, {.add_special_tokens = false});
      if (ids.empty() || (!first.empty() && ids.front() == first.front())) continue;
      first = ids;
      runs.push_back(std::move(ids));
    }
  }
}

// An answer is built in one piece and its numbers lie in memory until then.
Status CheckLogprobs(const PreparedRequest& request, int32_t max_model_len) {
  const RequestParams& params = request.params;
  if (!params.logprobs && !params.prompt_logprobs) return {};
  int64_t positions = 0, prompt_positions = 0;
  for (size_t i = 0; i < request.requests.size(); ++i) {
    const auto prompt = static_cast<int64_t>(request.requests[i].prompt.size());
    if (params.logprobs) positions += request.Sampling(i, max_model_len).max_tokens;
    if (params.logprobs && params.echo) positions += prompt;
    if (params.prompt_logprobs) prompt_positions += prompt;
  }
  // A completion's choices each repeat the prompt's.
  const int64_t repeats = params.endpoint == kChat ? 1 : params.n;
  const int64_t entries = positions * params.n * (1 + int64_t{params.top_logprobs.value_or(0)}) +
                          prompt_positions * repeats * (1 + params.prompt_logprobs.value_or(0));
  if (entries <= limits::kMaxLogprobEntries) return {};
  return Fail(ErrorCode::kInvalidArgument, "too_many_logprobs",
              params.logprobs ? "logprobs" : "prompt_logprobs",
              "the answer may have {} log-probabilities, alternatives counted; at most {} are "
              "allowed: ask for fewer tokens, choices or alternatives",
              entries, limits::kMaxLogprobEntries);
}

// What these routes do takes a prep thread's time, and no engine limit bounds it.
Status CheckTokenizeText(std::string_view text, std::string_view field) {
  if (text.size() <= limits::kMaxTokenizeBytes) return {};
  return Fail(ErrorCode::kInvalidArgument, "too_long", std::string(field),
              "the text has {} bytes; at most {} are tokenized at once", text.size(),
              limits::kMaxTokenizeBytes);
}

Result<std::vector<TokenId>> TokenizePrompt(const Prompt& prompt, const RequestParams& params,
                                            const ServedModel& model) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) return *ids;
  const std::string& text = std::get<std::string>(prompt);
  VIVACE_RETURN_IF_ERROR(CheckPromptText(text, "prompt", params, model));
  return model.tokenizer->Encode(text,
                                 {.add_special_tokens = params.add_special_tokens.value_or(true)});
}

// Names what messages say to nobody: where it stands in the request, the first of a kind.
Status ReportUnreadMembers(std::span<const std::string_view> unread, RequestParams* params) {
  if (unread.empty()) return {};
  if (!params->first_thought.empty()) return ReportOnce(params->first_thought, params);
  for (size_t i = 0; i < params->messages->size(); ++i) {
    for (const std::string_view name : unread) {
      const json::value* value = (*params->messages)[i].get_object().if_contains(name);
      if (value == nullptr || *value == nullptr || *value == "") continue;
      VIVACE_RETURN_IF_ERROR(ReportOnce(fmt::format("messages[{}].{}", i, name), params));
    }
  }
  return {};
}

// Renders the conversation and reports what the template has no use for.
Result<RenderedChat> RenderAndReport(RequestParams* params, const ServedModel& model) {
  VIVACE_ASSIGN(RenderedChat chat, RenderChat(*params, model));
  const ChatTemplate& used = *model.chat_template;
  if (params->reasoning_effort != nullptr && !KnowsReasoningEffort(used)) {
    params->ignored.emplace_back(ClientName(params->endpoint, "reasoning_effort"));
  }
  if (params->thinking.has_value() && !KnowsThinking(used)) {
    params->ignored.emplace_back("thinking");
  }
  VIVACE_RETURN_IF_ERROR(ReportUnreadMembers(chat.unread, params));
  if (params->chat_template_kwargs == nullptr) return chat;
  for (const auto& member : *params->chat_template_kwargs) {
    const std::string_view name = member.key();
    if (used.Reads(name)) continue;
    VIVACE_RETURN_IF_ERROR(ReportIgnored(fmt::format("chat_template_kwargs.{}", name), params));
  }
  return chat;
}

// The tokens that mark a gap to fill, in order of a prompt: before what precedes it, before what
// follows it, and where the answer begins. Sources: the model cards of Qwen2.5-Coder, StarCoder,
// DeepSeek-Coder, CodeLlama and CodeGemma.
struct GapTokens {
  std::string_view prefix, suffix, middle;
};
constexpr GapTokens kGapTokens[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    {"<PRE>", "<SUF>", "<MID>"},
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},
};

// The token with this name, a control token or a word of its own.
std::optional<TokenId> FindToken(const Tokenizer& tokenizer, std::string_view name) {
  const std::vector<TokenId> ids = tokenizer.Encode(name, {.add_special_tokens = false});
  if (ids.size() != 1 || tokenizer.TokenName(ids[0]) != name) return std::nullopt;
  return ids[0];
}

// Its three tokens; nullopt if the vocabulary lacks one.
std::optional<std::array<TokenId, 3>> FindGapTokens(const Tokenizer& tokenizer) {
  for (const GapTokens& names : kGapTokens) {
    const auto prefix = FindToken(tokenizer, names.prefix);
    const auto suffix = FindToken(tokenizer, names.suffix);
    const auto middle = FindToken(tokenizer, names.middle);
    if (prefix && suffix && middle) return std::array<TokenId, 3>{*prefix, *suffix, *middle};
  }
  return std::nullopt;
}

// Puts the prompt and the text behind the gap around the gap's tokens. A BOS stays first.
Status FillGap(const RequestParams& params, const ServedModel& model, std::vector<TokenId>* ids) {
  const Tokenizer& tokenizer = *model.tokenizer;
  const auto gap = FindGapTokens(tokenizer);
  if (!gap) {
    return Fail(ErrorCode::kUnsupported, "unsupported_parameter", "suffix",
                "`suffix` needs a model trained to fill gaps; this one's vocabulary has no tokens "
                "for it (such as <|fim_prefix|>)");
  }
  VIVACE_RETURN_IF_ERROR(CheckTextFits(*params.suffix, "suffix", model));
  const std::vector<TokenId> behind =
      tokenizer.Encode(*params.suffix, {.add_special_tokens = false});
  const bool has_bos = !ids->empty() && tokenizer.bos() == ids->front();
  ids->insert(ids->begin() + (has_bos ? 1 : 0), (*gap)[0]);
  ids->push_back((*gap)[1]);
  ids->insert(ids->end(), behind.begin(), behind.end());
  ids->push_back((*gap)[2]);
  return {};
}

// The answer's length and its least, where the context cuts them.
void ReportClamps(PreparedRequest* request, const ServedModel& model) {
  RequestParams& params = request->params;
  const auto report = [&](std::string_view name, int64_t wanted, int64_t given) {
    const auto same = [&](const Reports::Clamped& known) { return known.name == name; };
    if (given >= wanted || std::any_of(params.clamped.begin(), params.clamped.end(), same)) return;
    params.clamped.push_back({std::string(name), wanted, given});
  };
  for (size_t i = 0; i < request->requests.size(); ++i) {
    const SamplingParams given = request->Sampling(i, model.max_model_len);
    report(params.length_name(), params.wanted_tokens().value_or(0), given.max_tokens);
    report("min_tokens", params.sampling.min_tokens, given.min_tokens);
  }
}

// All but the prompt, which is there.
void FillEngineRequest(size_t i, int32_t max_model_len, PreparedRequest* prepared) {
  const RequestParams& params = prepared->params;
  GenerationRequest& request = prepared->requests[i];
  request.sampling = prepared->Sampling(i, max_model_len);
  request.num_choices = params.n;
  request.priority = params.priority;
  request.cache_salt = params.cache_salt;
  request.constraints = prepared->constraints.New(params.n);
}

// Cuts it to what fits beside the answer, if that was asked for, and checks what is left.
Status FitPrompt(std::vector<TokenId>* prompt, const ServedModel& model, RequestParams* params) {
  const int32_t answer = std::max(params->wanted_tokens().value_or(1), 1);
  TruncatePrompt(model.max_model_len - std::min(answer, model.max_model_len), prompt, params);
  return CheckLength(*params, prompt->size(), model);
}

// Members of a chat request that shape its prompt, or the answer that shows it.
constexpr std::string_view kOfPrompts[] = {"model",
                                           "messages",
                                           "tools",
                                           "tool_choice",
                                           "documents",
                                           "reasoning_effort",
                                           "max_tokens",
                                           "max_completion_tokens",
                                           "truncate_prompt_tokens",
                                           "chat_template_kwargs",
                                           "add_generation_prompt",
                                           "continue_final_message",
                                           "add_special_tokens",
                                           "request_id",
                                           "strict"};

// Members of a /tokenize request that concern a text; the others concern messages.
constexpr std::string_view kOfTexts[] = {
    "model", "prompt", "add_special_tokens", "truncate_prompt_tokens", "return_token_strs",
    "strict"};

// Members with rows that are not among those that are `read` here have no effect.
Status ReportUnread(const json::object& body, std::span<const std::string_view> read,
                    RequestParams* params) {
  for (const auto& [name, value] : body) {
    const ParamRow* row = FindParam(name, params->endpoint);
    if (row == nullptr || value.is_null()) continue;  // unknown: reported as such
    const bool no_effect = std::holds_alternative<RefusedField>(row->field) ||
                           std::holds_alternative<IgnoredField>(row->field);
    if (no_effect) continue;  // the same
    if (std::ranges::find(read, row->name) != read.end()) continue;
    VIVACE_RETURN_IF_ERROR(ReportOnce(name, params));
  }
  return {};
}

// What /render and /apply-template do with a chat beyond its template.
Status FitRenderedChat(const json::object& body, const ServedModel& model, RequestParams* params,
                       RenderedChat* chat) {
  VIVACE_RETURN_IF_ERROR(FitPrompt(&chat->ids, model, params));
  if (params->truncated_tokens > 0) {
    chat->text = model.tokenizer->Decode(chat->ids, /*skip_special=*/false);
  }
  return ReportUnread(body, kOfPrompts, params);  // nothing is generated
}

// An object of what `write` says of a conversation's prompt.
template <typename Write>
Result<TextAnswer> AnswerOfPrompt(Endpoint endpoint, std::string_view text,
                                  const ServedModel& model, Write write) {
  json::value body;
  RequestParams params;
  VIVACE_RETURN_IF_ERROR(ParseBody(endpoint, text, model, &body, &params));
  VIVACE_ASSIGN(RenderedChat chat, RenderAndReport(&params, model));
  if (endpoint == kChat) {
    VIVACE_RETURN_IF_ERROR(FitRenderedChat(body.get_object(), model, &params, &chat));
  }
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  write(chat, params, &w);
  w.EndObject();
  std::string request_id = params.request_id;
  return TextAnswer{std::move(out), std::move(params), std::move(request_id)};
}

}  // namespace

void TruncatePrompt(int32_t room, std::vector<TokenId>* ids, RequestParams* params) {
  if (!params->truncate_prompt_tokens) return;
  const int32_t wanted = *params->truncate_prompt_tokens;
  const auto most = static_cast<size_t>(wanted < 0 ? std::max(room, 1) : wanted);
  if (ids->size() <= most) return;
  params->truncated_tokens += static_cast<int64_t>(ids->size() - most);
  ids->erase(ids->begin(), ids->end() - static_cast<ptrdiff_t>(most));
}

Status CheckPromptText(std::string_view text, std::string_view field, const RequestParams& params,
                       const ServedModel& model) {
  return params.truncate_prompt_tokens ? CheckTokenizeText(text, field)
                                       : CheckTextFits(text, field, model);
}

SamplingParams PreparedRequest::Sampling(size_t i, int32_t max_model_len) const {
  SamplingParams sampling = params.sampling;
  const auto room = static_cast<int32_t>(int64_t{max_model_len} - std::ssize(requests[i].prompt));
  const int32_t by_default = params.conversation() ? room : kDefaultCompletionTokens;
  const int32_t wanted = params.wanted_tokens().value_or(by_default);
  sampling.max_tokens = wanted < 0 ? room : std::min(wanted, room);
  // The client may ask for more than there is room for; the rest of its wish stands.
  sampling.min_tokens = std::min(sampling.min_tokens, sampling.max_tokens);
  if (params.echo && (params.logprobs || sampling.max_tokens == 0)) {
    sampling.prompt_logprobs = std::max(params.sampling.logprobs, 0);
  }
  if (params.prompt_logprobs) {
    sampling.prompt_logprobs = std::max(sampling.prompt_logprobs, *params.prompt_logprobs);
  }
  return sampling;
}

Result<std::unique_ptr<PreparedRequest>> PrepareGeneration(Endpoint endpoint, std::string_view body,
                                                           const ServedModel& model,
                                                           EarlyWishes* early) {
  auto request = std::make_unique<PreparedRequest>();
  RequestParams& params = request->params;
  json::value dom;
  VIVACE_RETURN_IF_ERROR(ParseBody(endpoint, body, model, &dom, &params));
  if (early != nullptr) *early = {params.deadline_ms, params.max_queue_ms, params.request_id};
  if (params.conversation()) {
    VIVACE_ASSIGN(RenderedChat chat, RenderAndReport(&params, model));
    request->requests.emplace_back().prompt = std::move(chat.ids);
    request->reading = ReadingOf(params, model, OfferedTools(params), chat.reasoning);
  }
  for (const Prompt& prompt : params.prompts) {
    VIVACE_ASSIGN(auto ids, TokenizePrompt(prompt, params, model));
    if (params.suffix) VIVACE_RETURN_IF_ERROR(FillGap(params, model, &ids));
    request->requests.emplace_back().prompt = std::move(ids);
  }
  for (GenerationRequest& wanted : request->requests) {
    VIVACE_RETURN_IF_ERROR(FitPrompt(&wanted.prompt, model, &params));
  }
  VIVACE_ASSIGN(request->constraints, ConstrainOutputs(request->reading, model, &params));
  TokenizeBadWords(model, &params);
  VIVACE_RETURN_IF_ERROR(CheckLogprobs(*request, model.max_model_len));
  ReportClamps(request.get(), model);
  VIVACE_RETURN_IF_ERROR(CheckStrict(params));
  for (size_t i = 0; i < request->requests.size(); ++i) {
    FillEngineRequest(i, model.max_model_len, request.get());
  }
  params.prompts = {};
  params.turns = nullptr;
  params.made = {};
  params.instructions = nullptr;
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
    VIVACE_ASSIGN(RenderedChat chat, RenderAndReport(&params, model));
    ids = std::move(chat.ids);
  } else {
    const auto& prompt = std::get<std::string>(params.prompts.front());
    VIVACE_RETURN_IF_ERROR(CheckTokenizeText(prompt, "prompt"));
    ids = model.tokenizer->Encode(prompt,
                                  {.add_special_tokens = params.add_special_tokens.value_or(true)});
    VIVACE_RETURN_IF_ERROR(ReportUnread(body.get_object(), kOfTexts, &params));
  }
  TruncatePrompt(model.max_model_len - 1, &ids, &params);
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.KeyInt("count", static_cast<int64_t>(ids.size()));
  w.KeyInt("max_model_len", model.max_model_len);
  w.KeyInts("tokens", ids);
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
  return TextAnswer{std::move(out), std::move(params)};
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
  return TextAnswer{std::move(out), std::move(params)};
}

Result<TextAnswer> AnswerRender(std::string_view text, const ServedModel& model) {
  return AnswerOfPrompt(kChat, text, model, [&](const auto& chat, const auto& params, auto* w) {
    if (!params.request_id.empty()) w->KeyString("request_id", params.request_id);
    w->KeyString("model", model.name());
    w->KeyString("prompt", chat.text);
    w->KeyInts("token_ids", chat.ids);
    w->KeyInt("count", static_cast<int64_t>(chat.ids.size()));
    w->KeyInt("max_model_len", model.max_model_len);
  });
}

Result<TextAnswer> AnswerApplyTemplate(std::string_view text, const ServedModel& model) {
  return AnswerOfPrompt(kChat, text, model, [](const auto& chat, const auto&, auto* w) {
    w->KeyString("prompt", chat.text);
  });
}

Result<TextAnswer> AnswerCountTokens(std::string_view text, const ServedModel& model) {
  return AnswerOfPrompt(kCountTokens, text, model, [](const auto& chat, const auto&, auto* w) {
    w->KeyInt("input_tokens", static_cast<int64_t>(chat.ids.size()));
  });
}

}  // namespace vivace::server
