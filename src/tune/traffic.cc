#include "tune/traffic.h"

#include <algorithm>

#include "bench/prompt_maker.h"

namespace vivace::tune {

Status FillTurns(const ModelText& text, Traffic* traffic) {
  bench::PromptMaker maker(&text);
  traffic->turns.clear();
  for (const load::PlannedRequest& request : traffic->workload.requests) {
    bench::Conversation fresh;
    VIVACE_ASSIGN(std::vector<TokenId> tokens, maker.Prompt(request, &fresh));
    if (tokens.empty()) tokens.push_back(0);
    traffic->turns.push_back(std::move(tokens));
  }
  return {};
}

TypicalLengths TypicalOf(const Traffic& traffic) {
  if (traffic.turns.empty()) return {};
  int64_t input = 0, output = 0;
  for (size_t i = 0; i < traffic.turns.size(); ++i) {
    input += std::ssize(traffic.turns[i]);
    output += traffic.workload.requests[i].output_tokens;
  }
  const auto n = static_cast<int64_t>(traffic.turns.size());
  return {.input = static_cast<int32_t>(std::max<int64_t>(input / n, 1)),
          .output = static_cast<int32_t>(std::max<int64_t>(output / n, 1))};
}

}  // namespace vivace::tune
