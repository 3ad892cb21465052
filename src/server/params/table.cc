// The rows. Order is that of the documentation page: input, generation, output, embeddings, then
// what is refused and what is ignored.
#include "server/params/table.h"

#include <array>

#include "base/limits.h"
#include "server/params/grammar_readers.h"
#include "server/params/messages_readers.h"
#include "server/params/readers.h"
#include "server/params/responses_readers.h"

namespace vivace::server {
namespace {

using P = RequestParams;

constexpr EndpointSet kGenerate = kChat | kCompletions | kResponses | kMessages;
constexpr EndpointSet kTexts = kChat | kCompletions;  // answers with choices
constexpr EndpointSet kEmbed = kEmbeddings | kRerank | kScore;
constexpr EndpointSet kAll = kGenerate | kCountTokens | kTokenize | kDetokenize | kEmbed;
constexpr EndpointSet kAnthropic = kMessages | kCountTokens;
constexpr int64_t kMaxInt32 = INT32_MAX;
constexpr size_t kMaxModelNameBytes = 256;

constexpr std::string_view kNoBeams = "beam search is not offered";

// Schemas of the shapes that readers take, as coarse as they may be.
constexpr std::string_view kMessageList =
    R"({"type":"array","minItems":1,"items":{"type":"object","required":["role","content"],)"
    R"("properties":{"role":{"enum":["system","developer","user","assistant","tool"]},)"
    R"("content":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"object",)"
    R"("required":["type","text"],"properties":{"type":{"const":"text"},)"
    R"("text":{"type":"string"}}}}]},"tool_calls":{"type":["array","null"],)"
    R"("items":{"type":"object"}}}}})";
constexpr std::string_view kTurnList =
    R"({"type":"array","minItems":1,"items":{"type":"object","required":["role","content"],)"
    R"("properties":{"role":{"enum":["user","assistant"]},)"
    R"("content":{"anyOf":[{"type":"string","minLength":1},{"type":"array","minItems":1,)"
    R"("items":{"type":"object","required":["type"]}}]}}}})";
constexpr std::string_view kToolList =
    R"({"type":"array","maxItems":128,"items":{"type":"object","required":["type","function"],)"
    R"("properties":{"type":{"const":"function"},"function":{"type":"object","required":["name"],)"
    R"("properties":{"name":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},)"
    R"("description":{"type":["string","null"]},"strict":{"type":["boolean","null"]},)"
    R"("parameters":{"type":["object","null"],"properties":{"type":{"const":"object"}}}}}}}})";
constexpr std::string_view kBias =
    R"({"type":"object","maxProperties":1024,"propertyNames":{"pattern":"^[0-9]{1,6}$"},)"
    R"("additionalProperties":{"type":"number","minimum":-100,"maximum":100}})";
constexpr std::string_view kStops =
    R"({"anyOf":[{"type":"string","minLength":1,"maxLength":64},{"type":"array","maxItems":16,)"
    R"("items":{"type":"string","minLength":1,"maxLength":64}}]})";
constexpr std::string_view kObjectList = R"({"type":"array","items":{"type":"object"}})";
constexpr std::string_view kObject = R"({"type":"object"})";
constexpr std::string_view kString = R"({"type":"string"})";
constexpr std::string_view kStringList = R"({"type":"array","items":{"type":"string"}})";
constexpr std::string_view kStringOrObject = R"({"type":["string","object"]})";
constexpr std::string_view kIdList = R"({"type":"array","items":{"type":"integer"}})";
constexpr std::string_view kStringOrList = R"({"type":["string","array"]})";

int32_t I32(int64_t v) { return static_cast<int32_t>(v); }

const ParamRow kInputRows[] = {
    {"model", "", kAll,
     StringField{kMaxModelNameBytes, [](P& p, std::string_view v) { p.model = v; }},
     "the served model", "One of the served names; 404 for another one."},
    {"messages", "", kChat | kTokenize,
     CustomField{"list of messages", ReadMessages, kMessageList, &kChatMessageMembers}, "required",
     "The conversation. Roles: system, developer, user, assistant, tool. Content: a string, or "
     "parts "
     "of type text; null for an assistant."},
    {"messages", "", kAnthropic, CustomField{"list of messages", ReadBlockMessages, kTurnList},
     "required",
     "The conversation: user and assistant, a string or blocks of type text, thinking, tool_use "
     "and "
     "tool_result. A last message of the assistant's is continued."},
    {"system", "", kAnthropic,
     CustomField{"string or list of text blocks", ReadSystem, kStringOrList}, "none",
     "What comes before the conversation."},
    {"input", "", kResponses, CustomField{"string or list of items", ReadInput, kStringOrList},
     "required",
     "The conversation: messages, function_call, function_call_output and reasoning items."},
    {"instructions", "", kResponses, CustomField{"string", ReadInstructions, kString}, "none",
     "A system message before the input."},
    {"prompt", "", kCompletions | kTokenize,
     CustomField{"string, list of strings, token ids, list of token ids", ReadPrompt,
                 kStringOrList},
     "required",
     "The text or ids to continue, at most 128 prompts. /tokenize takes a string. Token ids are "
     "used as they are."},
    {"tokens", "", kDetokenize, CustomField{"list of token ids", ReadTokens, kIdList}, "required",
     "The ids to turn into text."},
    {"tools", "", kChat | kTokenize,
     CustomField{"list of function tools", ReadTools, kToolList, &kChatToolMembers}, "none",
     "Functions the model may call: at most 128, names of up to 128 letters, digits, `_` and `-`, "
     "no two alike, 256 KiB of JSON together. In which format calls are written and read is found "
     "from the chat template. `strict`: the arguments obey the schema."},
    {"tools", "", kResponses,
     CustomField{"list of function tools", ReadFlatTools, kObjectList, &kFlatToolMembers}, "none",
     "As for chat, without the inner object; only functions."},
    {"tools", "", kAnthropic, CustomField{"list of tools", ReadSchemaTools, kObjectList}, "none",
     "As for chat, in Anthropic's shape: name, description, input_schema."},
    {"tool_choice", "", kResponses,
     CustomField{"auto, none, required, a function or allowed_tools", ReadFlatToolChoice,
                 kStringOrObject, &kFlatToolChoiceMembers},
     "auto", "As for chat, without the inner objects."},
    {"tool_choice", "", kAnthropic, CustomField{"object of a type", ReadTypedToolChoice, kObject},
     "auto", "As for chat: type auto, any, tool or none, and disable_parallel_tool_use."},
    {"reasoning", "", kResponses, CustomField{"object", ReadReasoning, kObject}, "the template's",
     "effort, as reasoning_effort."},
    {"thinking", "", kAnthropic, CustomField{"object", ReadThinking, kObject}, "the template's",
     "type enabled, disabled or adaptive, and budget_tokens: whether a template that knows the "
     "choice lets the model think."},
    {"text", "", kResponses, CustomField{"object", ReadText, kObject, &kTextMembers}, "text",
     "format, as response_format, in the flat form."},
    {"output_config", "", kAnthropic,
     CustomField{"object", ReadOutputConfig, kObject, &kOutputConfigMembers}, "text",
     "format, a json_schema, and effort."},
    {"tool_choice", "", kChat,
     CustomField{"\"none\", \"auto\", \"required\", a named function or allowed_tools",
                 ReadToolChoice, kStringOrObject, &kChatToolChoiceMembers},
     "auto",
     "none: the tools are not told to the model. auto: it may call them. required: at least one "
     "call and nothing else. A named function: one call of it. allowed_tools, with a mode of auto "
     "or "
     "required: only those tools are told to the model. Forced calls obey their schemas."},
    {"parallel_tool_calls", "", kChat | kResponses,
     BoolField{[](P& p, bool v) { p.parallel_tool_calls = v; }}, "true",
     "false: at most one call in an answer."},
    {"documents", "", kChat | kTokenize,
     CustomField{"list of objects of strings", ReadDocuments, kObjectList}, "none",
     "Handed to the chat template; refused if it reads none."},
    {"reasoning_effort", "", kChat | kTokenize,
     CustomField{"none, minimal, low, medium, high, xhigh or max", ReadReasoningEffort, kString},
     "the template's",
     "Handed to the chat template. Where it knows only whether to think (`enable_thinking`, "
     "`thinking`), none switches thinking off and any other on. Reported if it knows neither."},
    {"include_reasoning", "", kChat, BoolField{[](P& p, bool v) { p.include_reasoning = v; }},
     "true", "false: thinking is left out of the answer; it counts all the same."},
    {"thinking_token_budget", "reasoning_budget_tokens", kChat,
     IntField{-1, limits::kMaxReasoningTokens,
              [](P& p, int64_t v) {
                if (v >= 0) p.thinking_token_budget = I32(v);
              }},
     "none",
     "After so many tokens of thinking the mark that ends it is forced. -1: no bound. Reported "
     "where the model has no such mark of one token."},
    {"chat_template_kwargs", "", kConversations | kTokenize,
     CustomField{"object", ReadChatTemplateKwargs, kObject}, "{}",
     "Further variables for the chat template."},
    {"add_generation_prompt", "", kChat | kTokenize,
     BoolField{[](P& p, bool v) { p.add_generation_prompt = v; }}, "true",
     "End the prompt with the opening of an assistant's turn. True goes without "
     "continue_final_message."},
    {"continue_final_message", "", kChat | kTokenize,
     BoolField{[](P& p, bool v) { p.continue_final_message = v; }}, "false",
     "Leave the last message open, to be continued; then no generation prompt is added."},
    {"suffix", "", kCompletions,
     StringField{limits::kMaxBodyBytes, [](P& p, std::string_view v) { p.suffix = v; }}, "none",
     "The text behind a gap that the answer fills; for models whose vocabulary has tokens for it."},
    {"truncate_prompt_tokens", "", kGenerate | kTokenize | kEmbed,
     IntField{-1, kMaxInt32, [](P& p, int64_t v) { p.truncate_prompt_tokens = I32(v); }}, "none",
     "Keep the last so many tokens of each prompt; -1: as many as fit beside the answer. What was "
     "cut is counted in vivace.truncated_prompt_tokens and x-vivace-truncated-prompt-tokens."},
    {"add_special_tokens", "", kTexts | kTokenize | kEmbed,
     BoolField{[](P& p, bool v) { p.add_special_tokens = v; }}, "true for text, false for messages",
     "Add what the tokenizer adds around a text, such as a BOS token."},
};

const ParamRow kGenerationRows[] = {
    {"max_tokens", "max_new_tokens", kTexts | kMessages,
     IntField{0, kMaxInt32, [](P& p, int64_t v) { p.max_tokens = I32(v); }},
     "16 for completions, the rest of the context for chat",
     "Most tokens of output; cut to what the context leaves, and reported then. 0 only "
     "with echo. Required by /v1/messages."},
    {"max_output_tokens", "", kResponses,
     IntField{1, kMaxInt32, [](P& p, int64_t v) { p.max_tokens = I32(v); }},
     "the rest of the context", "Most tokens of output; cut and reported likewise."},
    {"max_completion_tokens", "n_predict", kTexts,
     IntField{-1, kMaxInt32, [](P& p, int64_t v) { p.max_completion_tokens = I32(v); }},
     "max_tokens", "The same; wins over max_tokens. -1: what the context leaves."},
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
    {"logit_bias", "", kGenerate,
     CustomField{"object of token id to -100..100", ReadLogitBias, kBias}, "{}",
     "Added to the logits of these tokens; at most 1024 entries."},
    {"allowed_token_ids", "", kGenerate,
     CustomField{"list of token ids", ReadAllowedTokenIds, kIdList}, "all",
     "Only these tokens are drawn. EOS is one of them only if it is listed."},
    {"bad_words", "", kGenerate, CustomField{"list of strings", ReadBadWords, kStringList}, "none",
     "At most 128 words of at most 256 bytes and 64 tokens. The last token of a word is not drawn "
     "where the output ends with the others; with and without a space before the word."},
    {"seed", "", kGenerate,
     IntField{INT64_MIN, INT64_MAX,
              [](P& p, int64_t v) {
                p.sampling.seeded = v != -1;
                p.sampling.seed = v == -1 ? 0 : static_cast<uint64_t>(v);
              }},
     "a new one",
     "The same request with the same seed has the same answer, whatever else runs. "
     "-1: none."},
    {"n", "n_cmpl", kTexts, IntField{1, limits::kMaxChoices, [](P& p, int64_t v) { p.n = I32(v); }},
     "1", "Choices per prompt. Prompts times choices may be at most 128."},
    {"best_of", "", kTexts,
     IntField{1, limits::kMaxChoices, [](P& p, int64_t v) { p.best_of = I32(v); }}, "n",
     "Accepted when it equals n."},
    {"stop_sequences", "", kMessages, CustomField{"list of strings", ReadStop, kStops}, "none",
     "As stop."},
    {"stop", "", kTexts | kResponses, CustomField{"string or list of strings", ReadStop, kStops},
     "none",
     "At most 16 strings of at most 256 bytes. The output ends before the first that appears."},
    {"stop_token_ids", "", kGenerate, CustomField{"list of token ids", ReadStopTokenIds, kIdList},
     "none", "At most 128 ids that end the output as EOS does, also with ignore_eos."},
    {"include_stop_str_in_output", "no_stop_trim", kGenerate,
     BoolField{[](P& p, bool v) { p.include_stop_str_in_output = v; }}, "false",
     "Keep the stop string, or the text of the stop token, that ended the output."},
    {"ignore_eos", "", kGenerate, BoolField{[](P& p, bool v) { p.sampling.ignore_eos = v; }},
     "false", "Go on after the model's end-of-text tokens."},
    {"priority", "", kGenerate | kEmbed,
     IntField{INT32_MIN, INT32_MAX, [](P& p, int64_t v) { p.priority = I32(v); }}, "0",
     "Lower is served sooner; then first come, first served."},
    {"cache_salt", "", kGenerate | kEmbed,
     StringField{limits::kMaxCacheSaltBytes, [](P& p, std::string_view v) { p.cache_salt = v; }},
     "none", "Prompts share cached prefixes only under the same salt."},
    {"deadline_ms", "", kGenerate | kEmbed,
     IntField{1, limits::kMaxDeadlineMs, [](P& p, int64_t v) { p.deadline_ms = v; }}, "none",
     "Milliseconds from the arrival of the request's headers to the end of the answer. What has "
     "been generated by then is the answer (finish_reason length, stop_reason deadline; everywhere "
     "vivace.deadline); where that is nothing, 504 deadline_exceeded. Refused at once (503) when "
     "the prompts that wait and run before it are expected to take longer."},
    {"max_queue_ms", "", kGenerate | kEmbed,
     IntField{1, limits::kMaxDeadlineMs, [](P& p, int64_t v) { p.max_queue_ms = v; }}, "none",
     "Milliseconds, from the same moment, within which the model must have begun with the request: "
     "503 queue_timeout otherwise, at once where the queue is known to be longer. Of several "
     "inputs, with the first."},
};

// What the output must be: one of these at most.
const ParamRow kGrammarRows[] = {
    {"response_format", "", kGenerate,
     CustomField{"object", ReadResponseFormat, kObject, &kResponseFormatMembers}, "text",
     "text, json_object (any object), json_schema (output that the schema allows, "
     "docs/structured.md) "
     "or structural_tag. A schema that cannot be enforced is refused by keyword."},
    {"structured_outputs", "", kGenerate, CustomField{"object", ReadStructuredOutputs, kObject},
     "none", "vLLM's: one of json, regex, choice, grammar, json_object, structural_tag."},
    {"guided_json", "json_schema", kGenerate, CustomField{"schema", ReadJsonSchema}, "none",
     "A JSON schema, or the text of one."},
    {"guided_regex", "regex", kGenerate, CustomField{"string", ReadRegex, kString}, "none",
     "A regular expression that the whole output matches."},
    {"guided_choice", "", kGenerate, CustomField{"list of strings", ReadChoice, kStringList},
     "none", "The output is one of these."},
    {"guided_grammar", "grammar", kGenerate, CustomField{"string", ReadGrammar, kString}, "none",
     "A grammar in GBNF; its first rule is root."},
    {"ebnf", "", kGenerate, CustomField{"string", ReadGrammar, kString}, "none", "The same."},
    {"guided_json_object", "", kGenerate, CustomField{"boolean", ReadJsonObject}, "false",
     "Any JSON object."},
    {"structural_tag", "", kGenerate, CustomField{"object", ReadStructuralTag, kObject}, "none",
     "xgrammar's structural tag: free text with stretches that a grammar holds to."},
};

const ParamRow kOutputRows[] = {
    {"stream", "", kGenerate, BoolField{[](P& p, bool v) { p.stream = v; }}, "false",
     "Answer with server-sent events."},
    {"stream_options", "", kTexts, CustomField{"object", ReadStreamOptions, kObject}, "{}",
     "include_usage: a last chunk with the usage. continuous_usage_stats: usage in every chunk. "
     "Only with stream."},
    {"echo", "", kCompletions, BoolField{[](P& p, bool v) { p.echo = v; }}, "false",
     "Begin the text with the prompt; with logprobs, the prompt's tokens as well."},
    {"logprobs", "", kChat, BoolField{[](P& p, bool v) { p.logprobs = v; }}, "false",
     "Log-probabilities of the output's tokens, of the model's raw distribution. Tokens times "
     "choices times (1 + alternatives) may be at most 400,000."},
    {"top_logprobs", "", kChat,
     IntField{0, limits::kMaxTopLogprobs, [](P& p, int64_t v) { p.top_logprobs = I32(v); }}, "0",
     "This many most likely tokens at each position; more than 0 needs logprobs."},
    {"include", "", kResponses, CustomField{"list of strings", ReadInclude, kStringList}, "[]",
     "message.output_text.logprobs; others are reported."},
    {"top_logprobs", "", kResponses,
     IntField{0, limits::kMaxTopLogprobs,
              [](P& p, int64_t v) {
                p.logprobs = p.logprobs || v > 0;
                p.top_logprobs = I32(v);
              }},
     "0", "Log-probabilities, with this many most likely tokens at each position."},
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
    {"prompt_logprobs", "", kTexts,
     IntField{0, limits::kMaxTopLogprobs, [](P& p, int64_t v) { p.prompt_logprobs = I32(v); }},
     "none",
     "Log-probabilities of the prompt's tokens, with this many most likely ones at each position, "
     "in vLLM's shape. Not with stream."},
    {"return_token_ids", "", kTexts, BoolField{[](P& p, bool v) { p.return_token_ids = v; }},
     "false", "Add prompt_token_ids and token_ids to the answer."},
    {"return_tokens_as_token_ids", "", kTexts,
     BoolField{[](P& p, bool v) { p.return_tokens_as_token_ids = v; }}, "false",
     "Name tokens in log-probabilities \"token_id:N\"."},
    {"return_token_strs", "", kTokenize, BoolField{[](P& p, bool v) { p.return_token_strs = v; }},
     "false", "Add the text of each token."},
    {"truncation", "", kResponses, CustomField{"\"auto\" or \"disabled\"", ReadTruncation, kString},
     "disabled", "A prompt that is too long is refused; auto is reported."},
    {"metadata", "", kResponses, CustomField{"object of strings", ReadMetadata, kObject}, "{}",
     "Repeated in the answer."},
    {"request_id", "", kGenerate | kEmbed, CustomField{"string", ReadRequestId, kString},
     "the server's own",
     "The answer's id, behind its prefix, and its x-request-id header: 1 to 128 letters, digits "
     "and "
     "._:-. The header X-Request-Id says the same where this does not."},
    {"strict", "", kAll, BoolField{[](P& p, bool v) { p.strict = v; }}, "false",
     "Refuse what would be ignored, clamped or renamed, instead of reporting it."},
};

const ParamRow kEmbeddingRows[] = {
    {"input", "", kEmbeddings,
     CustomField{"string, list of strings, token ids, list of token ids", ReadPrompt,
                 kStringOrList},
     "required", "What to embed; at most 2048 inputs."},
    {"query", "", kRerank,
     StringField{limits::kMaxTokenizeBytes,
                 [](P& p, std::string_view v) { p.first_texts.assign(1, std::string(v)); }},
     "required", "What the documents are compared with."},
    {"documents", "", kRerank,
     CustomField{"string, list of strings or of objects with a text", ReadSecondTexts,
                 kStringOrList},
     "required", "At most 1024. One string is a list of one."},
    {"text_1", "queries", kScore,
     CustomField{"string or list of strings", ReadFirstTexts, kStringOrList}, "required",
     "One text, compared with each of text_2; or as many as text_2 has, in pairs."},
    {"text_2", "documents", kScore,
     CustomField{"string or list of strings", ReadSecondTexts, kStringOrList}, "required",
     "At most 1024 texts."},
    {"pooling", "", kEmbed, CustomField{"\"mean\" or \"last\"", ReadPooling, kString}, "mean",
     "Which hidden states make the embedding: the mean over all tokens, or the last one's."},
    {"encoding_format", "", kEmbeddings,
     CustomField{"\"float\" or \"base64\"", ReadEncodingFormat, kString}, "float",
     "Numbers, or base64 of little-endian float32."},
    {"dimensions", "", kEmbed,
     IntField{1, kMaxInt32, [](P& p, int64_t v) { p.dimensions = I32(v); }}, "all",
     "Keep the first so many numbers of an embedding (and scale it to a length of 1 again)."},
    {"normalize", "", kEmbeddings, BoolField{[](P& p, bool v) { p.normalize = v; }}, "true",
     "Scale embeddings to a length of 1."},
    {"top_n", "", kRerank, IntField{0, kMaxInt32, [](P& p, int64_t v) { p.top_n = I32(v); }}, "0",
     "How many of the best documents to return; 0: all."},
    {"return_documents", "", kRerank, BoolField{[](P& p, bool v) { p.return_documents = v; }},
     "true", "Return the documents' texts."},
};

const ParamRow kRefusedRows[] = {
    {"functions", "", kChat, RefusedField{"use tools"}, "", ""},
    {"function_call", "", kChat, RefusedField{"use tool_choice"}, "", ""},
    {"echo", "", kChat, RefusedField{"echo belongs to /v1/completions", true}, "", ""},
    {"prompt_logprobs", "", kResponses | kMessages,
     RefusedField{"use prompt_logprobs of /v1/chat/completions"}, "", ""},
    {"prompt_embeds", "", kGenerate, RefusedField{"embeddings as input are not offered"}, "", ""},
    {"use_beam_search", "", kGenerate, RefusedField{kNoBeams, true}, "", ""},
    {"length_penalty", "", kGenerate, RefusedField{kNoBeams, false, 1}, "", ""},
    {"early_stopping", "", kGenerate, RefusedField{kNoBeams, true}, "", ""},
    {"logprob_token_ids", "", kGenerate,
     RefusedField{"log-probabilities are those of the most likely tokens; use top_logprobs"}, "",
     ""},
    {"stop_regex", "", kGenerate, RefusedField{"use stop"}, "", ""},
    {"chat_template", "", kChat | kTokenize,
     RefusedField{"the template is the server's; requests cannot bring one"}, "", ""},
    {"previous_response_id", "", kResponses,
     RefusedField{"nothing is stored here; send the whole conversation as `input`"}, "", ""},
    {"conversation", "", kResponses,
     RefusedField{"nothing is stored here; send the whole conversation as `input`"}, "", ""},
    {"prompt", "", kResponses, RefusedField{"prompts are not stored here; use `input`"}, "", ""},
    {"background", "", kResponses, RefusedField{"answers are given at once, or streamed", true}, "",
     ""},
    {"mcp_servers", "", kMessages, RefusedField{"this server calls no others"}, "", ""},
    {"container", "", kMessages, RefusedField{"this server runs no code"}, "", ""},
    {"audio", "", kChat, RefusedField{"audio is not offered"}, "", ""},
    {"logits_processors", "", kGenerate, RefusedField{"code in requests is not offered"}, "", ""},
    {"lora_path", "", kGenerate, RefusedField{"adapters are not offered"}, "", ""},
};

constexpr std::string_view kNoEffect = "No effect on the answer.";

const ParamRow kIgnoredRows[] = {
    {"guided_decoding_backend", "", kGenerate, IgnoredField{}, "", "There is one."},
    {"user", "", kGenerate | kEmbed, IgnoredField{}, "", kNoEffect},
    {"metadata", "", kTexts | kMessages, IgnoredField{}, "", kNoEffect},
    {"store", "", kGenerate, IgnoredField{true}, "", "Nothing is stored."},
    {"service_tier", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"safety_identifier", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"prompt_cache_key", "", kGenerate, IgnoredField{}, "", "Prefixes are found by content."},
    {"cache_prompt", "", kGenerate, IgnoredField{}, "", "Prompts are always cached."},
    {"verbosity", "", kChat, IgnoredField{}, "", kNoEffect},
    {"modalities", "", kChat, IgnoredField{}, "", "Answers are text."},
    {"prediction", "", kChat, IgnoredField{}, "", "A hint for speed only."},
    {"spaces_between_special_tokens", "", kGenerate, IgnoredField{}, "", kNoEffect},
    {"cache_control", "", kAnthropic, IgnoredField{}, "", "Prompts are always cached."},
    {"stream_options", "", kResponses, IgnoredField{}, "", "Events carry no padding."},
    {"max_tool_calls", "", kResponses, IgnoredField{}, "", "Of the server's own tools, none here."},
    {"prompt_cache_retention", "", kResponses, IgnoredField{}, "",
     "Prefixes stay while there is room."},
    {"context_management", "", kResponses | kMessages, IgnoredField{}, "",
     "A prompt is never cut silently."},
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
  static const auto rows = Join(kInputRows, kGenerationRows, kGrammarRows, kOutputRows,
                                kEmbeddingRows, kRefusedRows, kIgnoredRows);
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
