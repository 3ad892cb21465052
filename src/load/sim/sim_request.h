// Bodies that come to a simulated server, and what goes back: OpenAI's completions and chat,
// /tokenize and /detokenize as vLLM has them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/sim/sim_options.h"

namespace vivace::load {

struct SimRequest {
  bool chat = false;
  bool stream = false;
  bool usage = false, continuous_usage = false;
  int32_t max_tokens = 16;
  int64_t prompt_tokens = 0;
};

// The error is what a server would answer with: 400, or 404 for a model it does not have.
Result<SimRequest> ReadSimRequest(std::string_view body, bool chat, const SimOptions& options);

// Writes the events of one answer.
class SimWriter {
 public:
  SimWriter(const SimRequest& request, const std::string& model, uint64_t number);

  // Chat's first event, with the role and nothing else; empty for completions.
  std::string Opening() const;
  // `tokens` more, `so_far` with them.
  std::string Tokens(int32_t tokens, int32_t so_far) const;
  // Finish reason, usage if it was asked for, [DONE].
  std::string Closing(int32_t tokens) const;
  // All of it in one body, for a request without `stream`.
  std::string Whole(int32_t tokens) const;

 private:
  std::string Event(std::string_view delta, std::string_view finish, int32_t so_far,
                    bool with_usage) const;
  std::string Usage(int32_t tokens) const;

  const SimRequest request_;
  std::string head_;  // {"id":...,"choices":
};

Result<std::string> AnswerSimTokenize(std::string_view body);
Result<std::string> AnswerSimDetokenize(std::string_view body);

}  // namespace vivace::load
