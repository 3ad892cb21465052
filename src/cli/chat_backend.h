// Whoever answers in `vivace chat`: an engine in this process, or a server by URL.
#pragma once

#include <atomic>
#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/config.h"

namespace vivace::cli {

struct ChatSampling {
  float temperature = 0.7f;  // small models ramble at the API's default of 1
  int32_t max_tokens = 0;    // of an answer; 0: as many as the context holds
};

class ChatBackend {
 public:
  virtual ~ChatBackend() = default;

  // Streams the answer to `messages` (OpenAI's shape) through `on_text`, on the calling thread, and
  // returns all of it. Ends early, without an error, soon after `cancelled` turns true.
  virtual Result<std::string> Reply(const boost::json::array& messages,
                                    const std::function<void(std::string_view)>& on_text,
                                    const std::atomic<bool>& cancelled) = 0;
};

// The answers of /v1/chat/completions of an OpenAI-compatible server. `url` with or without "/v1".
// `api_key` goes to that server as a bearer token; empty: none. It follows no redirects.
// kInvalidArgument for a key with what no key has.
Result<std::unique_ptr<ChatBackend>> MakeHttpBackend(std::string url, const ChatSampling& sampling,
                                                     std::string api_key);

// Loads the model file `config.model` and answers in this process.
Result<std::unique_ptr<ChatBackend>> MakeLocalBackend(const EngineConfig& config,
                                                      const ChatSampling& sampling);

}  // namespace vivace::cli
