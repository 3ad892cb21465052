#include "load/shared_prompts.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <vector>

#include "load/chains.h"

namespace vivace::load {
namespace {

constexpr double kBytesPerToken = 4;  // where the dataset could not count

// Prompts as bytes; those of messages are put together here.
class PromptBytes {
 public:
  std::string_view Of(const PlannedRequest& request) {
    if (const auto* text = std::get_if<std::string>(&request.prompt)) return *text;
    if (const auto* ids = std::get_if<PromptIds>(&request.prompt)) {
      return {reinterpret_cast<const char*>(ids->data()), ids->size() * sizeof(ids->front())};
    }
    std::string& made = made_.emplace_back();
    for (const Message& message : std::get<Messages>(request.prompt)) {
      made += message.role + "\n" + message.content + "\n";
    }
    return made;
  }

 private:
  std::deque<std::string> made_;
};

struct FirstPrompt {
  std::string_view bytes;
  double tokens;
};

double TokensOf(const PlannedRequest& request, size_t bytes) {
  if (request.prompt_tokens > 0) return request.prompt_tokens;
  return static_cast<double>(bytes) / kBytesPerToken;
}

size_t CommonStart(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

}  // namespace

double SharedPrompts(const Workload& workload) {
  PromptBytes bytes;
  std::vector<FirstPrompt> firsts;
  double all = 0, shared = 0;
  for (const Chain& chain : ChainsOf(workload)) {
    double said = 0;  // in the turns before
    for (size_t turn = 0; turn < chain.requests.size(); ++turn) {
      const PlannedRequest& request = workload.requests[chain.requests[turn]];
      const std::string_view prompt = bytes.Of(request);
      const double tokens = TokensOf(request, prompt.size());
      if (turn == 0) firsts.push_back({prompt, tokens});
      all += said + tokens;
      shared += said;
      said += tokens + request.output_tokens;
    }
  }
  std::sort(firsts.begin(), firsts.end(),
            [](const FirstPrompt& a, const FirstPrompt& b) { return a.bytes < b.bytes; });
  for (size_t i = 1; i < firsts.size(); ++i) {
    const FirstPrompt& prompt = firsts[i];
    if (prompt.bytes.empty()) continue;
    const size_t common = CommonStart(prompt.bytes, firsts[i - 1].bytes);
    shared +=
        prompt.tokens * static_cast<double>(common) / static_cast<double>(prompt.bytes.size());
  }
  return all > 0 ? shared / all : 0;
}

}  // namespace vivace::load
