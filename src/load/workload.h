// What a run sends. Made from a dataset (datasets/) before the run, so that nothing is generated
// while it is measured; immutable while it runs.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace vivace::load {

using PromptIds = std::vector<int32_t>;  // sent as token ids (completions only)
struct Message {
  std::string role, content;
};
using Messages = std::vector<Message>;

struct PlannedRequest {
  // Text, token ids, or messages. In a conversation: what this turn adds; the client puts the turns
  // before and the server's answers to them in front.
  std::variant<std::string, PromptIds, Messages> prompt;
  int32_t prompt_tokens = 0;  // exact where the dataset could make it so, or a guess; 0: not known
  int32_t output_tokens = 0;  // max_tokens
  int32_t conversation =
      -1;            // its turns are sent one after another, each after the answer to the last
  double at_s = -1;  // of a trace: seconds after the run's start; -1: by the arrival process
};

struct Workload {
  std::string name;  // "random 1024/128", for reports
  uint64_t seed = 0;
  std::vector<PlannedRequest> requests;
};

}  // namespace vivace::load
