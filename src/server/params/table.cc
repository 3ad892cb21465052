// The rows. Order is that of the documentation page: input, generation, output, then what is
// refused and what is ignored.
#include "server/params/table.h"

#include <array>

#include "base/limits.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

using P = RequestParams;

constexpr EndpointSet kGenerate = kChat | kCompletions;
constexpr int64_t kMaxInt32 = INT32_MAX;
constexpr size_t kMaxModelNameBytes = 256;

constexpr std::string_view kNoGrammar = "constrained decoding is not supported yet";
constexpr std::string_view kNoBeams = "beam search is not offered";

int32_t I32(int64_t v) { return static_cast<int32_t>(v); }

const ParamRow kInputRows[] = {
    {"model", "", kGenerate | kTokenize | kDetokenize,
     StringField{kMaxModelNameBytes, [](P& p, std::string_view v) { p.model = v; }},
     "the served model", "One of the served names; 404 for another one.", true},
    {"messages", "", kChat | kTokenize, CustomField{"list of messages", ReadMessages}, "required",
     "The conversation. Roles: system, developer, user, assistant, tool. Content: a string, or "
     "parts "
     "of type text; null for an assistant.",
     true},
    {"prompt", "", kCompletions | kTokenize,
     CustomField{"string, list of strings, token ids, list of token ids", ReadPrompt}, "required",
     "The text or ids to continue. /tokenize takes a string. Token ids are used as they are."},
    {"tokens", "", kDetokenize, CustomField{"list of token ids", ReadTokens}, "required",
     "The ids to turn into text."},
    {"tools", "", kChat | kTokenize, CustomField{"list of function tools", ReadTools}, "none",
     "Handed to the chat template. Calls in the answer are not parsed yet."},
    {"tool_choice", "", kChat, CustomField{"\"auto\" or \"none\"", ReadToolChoice}, "auto",
     "Forcing a call (required, or a named function) is refused."},
    {"documents", "", kChat | kTokenize, CustomField{"list of objects of strings", ReadDocuments},
     "none", "Handed to the chat template; refused if it reads none."},
    {"reasoning_effort", "", kChat | kTokenize,
     CustomField{"none, minimal, low, medium, high or xhigh", ReadReasoningEffort},
     "the template's", "Handed to the chat template; reported if it reads none."},
    {"chat_template_kwargs", "", kChat | kTokenize, CustomField{"object", ReadChatTemplateKwargs},
     "{}", "Further variables for the chat template."},
    {"add_generation_prompt", "", kChat | kTokenize,
     BoolField{[](P& p, bool v) { p.add_generation_prompt = v; }}, "true",
     "End the prompt with the opening of an assistant's turn."},
    {"continue_final_message", "", kChat | kTokenize,
     BoolField{[](P& p, bool v) { p.continue_final_message = v; }}, "false",
     "Leave the last message open, to be continued; then no generation prompt is added."},
    {"add_special_tokens", "", kGenerate | kTokenize,
     BoolField{[](P& p, bool v) { p.add_special_tokens = v; }}, "true for text, false for messages",
     "Add what the tokenizer adds around a text, such as a BOS token."},
};

const ParamRow kGenerationRows[] = {
    {"max_tokens", "max_new_tokens", kGenerate,
     IntField{0, kMaxInt32, [](P& p, int64_t v) { p.max_tokens = I32(v); }},
     "16 for completions, the rest of the context for chat",
     "Most tokens of output; cut to what the context leaves. 0 only with echo."},
    {"max_completion_tokens", "n_predict", kGenerate,
     IntField{0, kMaxInt32, [](P& p, int64_t v) { p.max_completion_tokens = I32(v); }},
     "max_tokens", "The same; wins over max_tokens."},
    {"min_tokens", "min_new_tokens", kGenerate,
     IntField{0, kMaxInt32, [](P& p, int64_t v) { p.sampling.min_tokens = I32(v); }}, "0",
     "Before this many tokens nothing ends the output: EOS and stop ids cannot be drawn, stop "
     "strings are not looked for."},
    {"temperature", "", kGenerate,
     NumberField{0, 100, false, [](P& p, float v) { p.sampling.temperature = v; }}, "1",
     "0 takes the most likely token; n choices are then equal."},
    {"top_p", "", kGenerate, NumberField{0, 1, true, [](P& p, float v) { p.sampling.top_p = v; }},
     "1", "Draw from the most likely tokens that together reach this probability."},
    {"top_k", "", kGenerate,
     IntField{-1, kMaxInt32, [](P& p, int64_t v) { p.sampling.top_k = v < 0 ? 0 : I32(v); }}, "0",
     "Draw from this many most likely tokens; 0 and -1: all."},
    {"min_p", "", kGenerate, NumberField{0, 1, false, [](P& p, float v) { p.sampling.min_p = v; }},
     "0", "Drop tokens less likely than this share of the most likely one's probability."},
    {"presence_penalty", "", kGenerate,
     NumberField{-2, 2, false, [](P& p, float v) { p.sampling.presence_penalty = v; }}, "0",
     "Taken off the logit of each token that the output already has."},
    {"frequency_penalty", "", kGenerate,
     NumberField{-2, 2, false, [](P& p, float v) { p.sampling.frequency_penalty = v; }}, "0",
     "The same, times how often the output has it."},
    {"repetition_penalty", "repeat_penalty", kGenerate,
     NumberField{0.01, 100, false, [](P& p, float v) { p.sampling.repetition_penalty = v; }}, "1",
     "Divides positive and multiplies negative logits of tokens that prompt or output have."},
    {"logit_bias", "", kGenerate, CustomField{"object of token id to -100..100", ReadLogitBias},
     "{}", "Added to the logits of these tokens; at most 1024 entries."},
    {"seed", "", kGenerate,
     IntField{INT64_MIN, INT64_MAX,
              [](P& p, int64_t v) {
                p.sampling.seeded = v != -1;
                p.sampling.seed = v == -1 ? 0 : static_cast<uint64_t>(v);
              }},
     "a new one",
     "The same request with the same seed has the same answer, whatever else runs. "
     "-1: none."},
    {"n", "n_cmpl", kGenerate,
     IntField{1, limits::kMaxChoices, [](P& p, int64_t v) { p.n = I32(v); }}, "1",
     "Choices per prompt. Prompts times choices may be at most 128."},
    {"best_of", "", kGenerate,
     IntField{1, limits::kMaxChoices, [](P& p, int64_t v) { p.best_of = I32(v); }}, "n",
     "Accepted when it equals n."},
    {"stop", "", kGenerate, CustomField{"string or list of strings", ReadStop}, "none",
     "At most 16 strings of at most 256 bytes. The output ends before the first that appears."},
    {"stop_token_ids", "", kGenerate, CustomField{"list of token ids", ReadStopTokenIds}, "none",
     "At most 128 ids that end the output as EOS does, also with ignore_eos."},
    {"include_stop_str_in_output", "no_stop_trim", kGenerate,
     BoolField{[](P& p, bool v) { p.include_stop_str_in_output = v; }}, "false",
     "Keep the stop string, or the text of the stop token, that ended the output."},
    {"ignore_eos", "", kGenerate, BoolField{[](P& p, bool v) { p.sampling.ignore_eos = v; }},
     "false", "Go on after the model's end-of-text tokens."},
    {"priority", "", kGenerate,
     IntField{INT32_MIN, INT32_MAX, [](P& p, int64_t v) { p.priority = I32(v); }}, "0",
     "Lower is served sooner; then first come, first served."},
    {"cache_salt", "", kGenerate,
     StringField{limits::kMaxCacheSaltBytes, [](P& p, std::string_view v) { p.cache_salt = v; }},
     "none", "Prompts share cached prefixes only under the same salt."},
    {"deadline_ms", "", kGenerate,
     IntField{1, limits::kMaxDeadlineMs, [](P& p, int64_t v) { p.deadline_ms = v; }}, "none",
     "Milliseconds from the arrival of the request's headers to the end of the answer. What has "
     "been generated by then is the answer (finish_reason length, stop_reason deadline); where "
     "that "
     "is nothing, 504 deadline_exceeded. Refused at once (503) when the first token is expected "
     "later."},
    {"max_queue_ms", "", kGenerate,
     IntField{1, limits::kMaxDeadlineMs, [](P& p, int64_t v) { p.max_queue_ms = v; }}, "none",
     "Milliseconds, from the same moment, within which the model must have begun with the request: "
     "503 queue_time_exceeded otherwise, at once where the queue is known to be longer."},
};

const ParamRow kOutputRows[] = {
    {"stream", "", kGenerate, BoolField{[](P& p, bool v) { p.stream = v; }}, "false",
     "Answer with server-sent events."},
    {"stream_options", "", kGenerate, CustomField{"object", ReadStreamOptions}, "{}",
     "include_usage: a last chunk with the usage. continuous_usage_stats: usage in every chunk. "
     "Only with stream."},
    {"echo", "", kCompletions, BoolField{[](P& p, bool v) { p.echo = v; }}, "false",
     "Begin the text with the prompt; with logprobs, the prompt's tokens as well."},
    {"logprobs", "", kChat, BoolField{[](P& p, bool v) { p.logprobs = v; }}, "false",
     "Log-probabilities of the output's tokens, of the model's raw distribution. Tokens times "
     "choices times (1 + alternatives) may be at most 400,000."},
    {"top_logprobs", "", kChat,
     IntField{0, limits::kMaxTopLogprobs, [](P& p, int64_t v) { p.top_logprobs = I32(v); }}, "0",
     "This many most likely tokens at each position; needs logprobs."},
    {"logprobs", "", kCompletions,
     IntField{0, limits::kMaxTopLogprobs,
              [](P& p, int64_t v) {
                p.logprobs = true;
                p.top_logprobs = I32(v);
              }},
     "none",
     "Log-probabilities, with this many most likely tokens at each position. Bounded as for chat."},
    {"skip_special_tokens", "", kGenerate,
     BoolField{[](P& p, bool v) { p.skip_special_tokens = v; }}, "true",
     "Leave control tokens out of the text."},
    {"return_token_ids", "", kGenerate, BoolField{[](P& p, bool v) { p.return_token_ids = v; }},
     "false", "Add prompt_token_ids and token_ids to the answer."},
    {"return_tokens_as_token_ids", "", kGenerate,
     BoolField{[](P& p, bool v) { p.return_tokens_as_token_ids = v; }}, "false",
     "Name tokens in log-probabilities \"token_id:N\"."},
    {"return_token_strs", "", kTokenize, BoolField{[](P& p, bool v) { p.return_token_strs = v; }},
     "false", "Add the text of each token."},
};

const ParamRow kRefusedRows[] = {
    {"response_format", "", kChat | kCompletions, CustomField{"object", ReadResponseFormat}, "text",
     "{\"type\": \"text\"} passes; json_object and json_schema are refused."},
    {"structured_outputs", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"guided_json", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"guided_regex", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"guided_choice", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"guided_grammar", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"guided_json_object", "", kGenerate, RefusedField{kNoGrammar, true}, "", ""},
    {"guided_decoding_backend", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"grammar", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"json_schema", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"regex", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"ebnf", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"structural_tag", "", kGenerate, RefusedField{kNoGrammar}, "", ""},
    {"functions", "", kChat, RefusedField{"use tools"}, "", ""},
    {"function_call", "", kChat, RefusedField{"use tool_choice"}, "", ""},
    {"echo", "", kChat, RefusedField{"echo belongs to /v1/completions", true}, "", ""},
    {"suffix", "", kCompletions, RefusedField{"filling a gap is not offered"}, "", ""},
    {"prompt_logprobs", "", kGenerate, RefusedField{"use echo and logprobs of /v1/completions"}, "",
     ""},
    {"prompt_embeds", "", kGenerate, RefusedField{"embeddings as input are not offered"}, "", ""},
    {"use_beam_search", "", kGenerate, RefusedField{kNoBeams, true}, "", ""},
    {"length_penalty", "", kGenerate, RefusedField{kNoBeams}, "", ""},
    {"early_stopping", "", kGenerate, RefusedField{kNoBeams, true}, "", ""},
    {"allowed_token_ids", "", kGenerate, RefusedField{"use logit_bias"}, "", ""},
    {"bad_words", "", kGenerate, RefusedField{"use logit_bias"}, "", ""},
    {"logprob_token_ids", "", kGenerate, RefusedField{"use top_logprobs"}, "", ""},
    {"stop_regex", "", kGenerate, RefusedField{"use stop"}, "", ""},
    {"truncate_prompt_tokens", "", kGenerate | kTokenize,
     RefusedField{"a prompt is never cut silently"}, "", ""},
    {"chat_template", "", kChat | kTokenize,
     RefusedField{"the template is the server's; requests cannot bring one"}, "", ""},
    {"audio", "", kChat, RefusedField{"audio is not offered"}, "", ""},
    {"logits_processors", "", kGenerate, RefusedField{"code in requests is not offered"}, "", ""},
    {"lora_path", "", kGenerate, RefusedField{"adapters are not offered"}, "", ""},
    {"thinking_token_budget", "", kChat, RefusedField{"reasoning budgets are not offered"}, "", ""},
};

constexpr std::string_view kNoEffect = "No effect on the answer.";

const ParamRow kIgnoredRows[] = {
    {"user", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"metadata", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"store", "", kGenerate, IgnoredField{}, "", "Nothing is stored."},
    {"service_tier", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"safety_identifier", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"prompt_cache_key", "", kGenerate, IgnoredField{}, "", "Prefixes are found by content."},
    {"cache_prompt", "", kGenerate, IgnoredField{}, "", "Prompts are always cached."},
    {"parallel_tool_calls", "", kChat, IgnoredField{}, "", "Tool calls are not parsed yet."},
    {"verbosity", "", kChat, IgnoredField{}, "", kNoEffect},
    {"modalities", "", kChat, IgnoredField{}, "", "Answers are text."},
    {"prediction", "", kChat, IgnoredField{}, "", "A hint for speed only."},
    {"spaces_between_special_tokens", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"request_id", "", kGenerate, IgnoredField{}, "", "Ids are the server's own."},
    {"stream_interval", "", kGenerate, IgnoredField{}, "", "Deltas are sent as they come."},
};

// All rows in one piece, made once.
template <size_t... N>
auto Join(const ParamRow (&... parts)[N]) {
  std::array<ParamRow, (N + ...)> rows{};
  size_t at = 0;
  const auto append = [&](std::span<const ParamRow> part) {
    for (const ParamRow& row : part) rows[at++] = row;
  };
  (append(parts), ...);
  return rows;
}

}  // namespace

std::span<const ParamRow> ParamTable() {
  static const auto rows =
      Join(kInputRows, kGenerationRows, kOutputRows, kRefusedRows, kIgnoredRows);
  return rows;
}

const ParamRow* FindParam(std::string_view member, Endpoint endpoint) {
  for (const ParamRow& row : ParamTable()) {
    if ((row.endpoints & endpoint) == 0) continue;
    if (row.name == member || (!row.alias.empty() && row.alias == member)) return &row;
  }
  return nullptr;
}

}  // namespace vivace::server
