// What a request asks for, after the parameter table has read and checked it. Plain data; points
// into the request's JSON document where a value is handed on as it is (the document outlives it).
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "sample/sampling_params.h"

namespace vivace::server {

namespace json = boost::json;

// Endpoints that read a JSON body; a row of the table names those it belongs to.
enum Endpoint : uint8_t {
  kChat = 1,
  kCompletions = 2,
  kTokenize = 4,
  kDetokenize = 8,
};
using EndpointSet = uint8_t;

using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct RequestParams {
  Endpoint endpoint = kChat;
  std::optional<std::string> model;

  // Input.
  std::vector<Prompt> prompts;                    // completions; one for tokenize
  const json::array* messages = nullptr;          // chat, tokenize
  const json::array* tools = nullptr;             // not null: not empty
  const json::array* documents = nullptr;         // not null: not empty
  const json::value* reasoning_effort = nullptr;  // a string
  const json::object* chat_template_kwargs = nullptr;
  std::vector<TokenId> tokens;  // detokenize
  bool has_tokens = false;
  std::optional<bool> add_special_tokens;  // default: text yes, chat no
  bool add_generation_prompt = true;
  bool continue_final_message = false;

  // Generation.
  SamplingParams sampling;  // its max_tokens is set from those below
  std::optional<int32_t> max_tokens;
  std::optional<int32_t> max_completion_tokens;
  int32_t n = 1;
  std::optional<int32_t> best_of;
  std::vector<std::string> stop;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  int32_t priority = 0;
  std::string cache_salt;
  std::optional<int64_t> deadline_ms;
  std::optional<int64_t> max_queue_ms;

  // Output.
  bool stream = false;
  bool has_stream_options = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;
  bool echo = false;
  bool logprobs = false;                // wanted at all
  std::optional<int32_t> top_logprobs;  // how many alternatives
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool return_token_strs = false;  // tokenize

  // Members that were read and had no effect: known ones we ignore and unknown ones.
  std::vector<std::string> ignored;

  // The wanted output length: max_completion_tokens wins over max_tokens.
  std::optional<int32_t> wanted_tokens() const {
    return max_completion_tokens ? max_completion_tokens : max_tokens;
  }
};

}  // namespace vivace::server
