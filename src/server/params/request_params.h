// What a request asks for, after the parameter table has read and checked it. Plain data; points
// into the request's JSON document where a value is handed on as it is (the document outlives it).
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "grammar/grammar.h"
#include "sample/sampling_params.h"
#include "sched/step_plan.h"

namespace vivace::server {

namespace json = boost::json;

// Endpoints that read a JSON body; a row of the table names those it belongs to.
enum Endpoint : uint16_t {
  kChat = 1,
  kCompletions = 2,
  kTokenize = 4,
  kDetokenize = 8,
  kResponses = 1 << 8,     // OpenAI's newer shape
  kMessages = 1 << 9,      // Anthropic's
  kCountTokens = 1 << 10,  // /v1/messages/count_tokens
  kEmbeddings = 1 << 12,
  kRerank = 1 << 13,
  kScore = 1 << 14,
};
using EndpointSet = uint16_t;

// Those whose input is a conversation that goes through the chat template.
inline constexpr EndpointSet kConversations = kChat | kResponses | kMessages | kCountTokens;

// What an answer may do with the request's tools.
enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

using Prompt = std::variant<std::string, std::vector<TokenId>>;

// What of a request was not taken as it was given: told to the client, or refused where it is
// strict.
struct Reports {
  struct Clamped {
    std::string name;
    int64_t wanted = 0;
    int64_t given = 0;
  };
  struct Renamed {
    std::string alias;
    std::string name;
  };
  // Members that were read and had no effect: known ones we ignore and unknown ones.
  std::vector<std::string> ignored = {};
  std::vector<Clamped> clamped = {};
  std::vector<Renamed> renamed = {};
  int64_t truncated_tokens = 0;  // that truncate_prompt_tokens took from the prompts: as asked for
  bool strict = false;
  bool steered = false;   // the way to an output's end was imposed, so that it is complete
  bool deadline = false;  // an output was cut by its deadline

  bool empty() const { return ignored.empty() && clamped.empty() && renamed.empty(); }
};

struct RequestParams : Reports {
  Endpoint endpoint = kChat;
  std::optional<std::string> model;

  // Input.
  std::vector<Prompt> prompts;            // completions; one for tokenize
  const json::array* messages = nullptr;  // chat, tokenize
  // What stands behind `messages` where the request has another shape: its turns in that of chat,
  // and what its system message says.
  std::shared_ptr<json::array> turns;
  json::value instructions;
  std::string first_thought;  // where such a request says the first of an assistant's thoughts
  // Values made from the request's, which other members point at.
  std::vector<std::shared_ptr<const json::value>> made;
  const json::array* tools = nullptr;  // not null: not empty
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_name;                   // of kNamed
  std::vector<std::string> allowed_tools;  // of tool_choice; empty: all. `tools` is cut to it
  std::vector<size_t> tool_places;         // where `tools` were before that; empty: as they are
  bool parallel_tool_calls = true;         // false: at most one call
  const json::array* documents = nullptr;  // not null: not empty
  const json::value* reasoning_effort = nullptr;  // a string
  const json::object* chat_template_kwargs = nullptr;
  std::vector<TokenId> tokens;  // detokenize
  bool has_tokens = false;
  std::optional<bool> add_special_tokens;     // default: text yes, chat no
  std::optional<bool> add_generation_prompt;  // default: unless the last message is continued
  bool continue_final_message = false;
  std::optional<int32_t> truncate_prompt_tokens;  // the last so many stay; -1: what fits
  std::optional<bool> thinking;       // asked for or not wanted; absent: the template's way
  std::optional<std::string> suffix;  // completions: the text behind the gap

  // Reasoning.
  bool include_reasoning = true;
  std::optional<int32_t> thinking_token_budget;

  // Generation.
  SamplingParams sampling;  // its max_tokens is set from those below
  std::optional<int32_t> max_tokens;
  std::optional<int32_t> max_completion_tokens;  // -1: the rest of the context
  int32_t n = 1;
  std::optional<int32_t> best_of;
  std::vector<std::string> stop;
  std::vector<std::string> bad_words;  // become sampling.bad_words
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  int32_t priority = 0;
  std::string cache_salt;
  std::optional<int64_t> deadline_ms;
  std::optional<int64_t> max_queue_ms;
  std::optional<GrammarSpec> grammar;  // what the output must be

  // Output.
  bool stream = false;
  bool has_stream_options = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;
  bool echo = false;
  bool logprobs = false;                // wanted at all
  std::optional<int32_t> top_logprobs;  // how many alternatives
  std::optional<int32_t> prompt_logprobs;
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool return_token_strs = false;  // tokenize
  std::string request_id;          // the client's own; empty: none
  std::string echoed;  // responses: members of the request that the answer repeats, as JSON

  // Embeddings, rerank and score; input is in `prompts`.
  std::vector<std::string> first_texts;   // query, or text_1
  std::vector<std::string> second_texts;  // documents, or text_2
  Pooling pooling = Pooling::kMean;
  bool base64 = false;
  bool normalize = true;
  std::optional<int32_t> dimensions;
  int32_t top_n = 0;  // 0: all
  bool return_documents = true;

  // The output is calls and nothing else.
  bool forces_calls() const {
    return tool_choice == ToolChoice::kRequired || tool_choice == ToolChoice::kNamed;
  }
  bool conversation() const { return (endpoint & kConversations) != 0; }

  // The wanted output length: max_completion_tokens wins over max_tokens.
  std::optional<int32_t> wanted_tokens() const {
    return max_completion_tokens ? max_completion_tokens : max_tokens;
  }
  // And the parameter that says it.
  std::string_view length_name() const {
    if (max_completion_tokens) return "max_completion_tokens";
    return endpoint == kResponses ? "max_output_tokens" : "max_tokens";
  }
};

}  // namespace vivace::server
