#include "load/chains.h"

#include <algorithm>
#include <unordered_map>

namespace vivace::load {

std::vector<Chain> ChainsOf(const Workload& workload) {
  std::vector<Chain> chains;
  std::unordered_map<int32_t, size_t> of_conversation;
  for (size_t i = 0; i < workload.requests.size(); ++i) {
    const PlannedRequest& request = workload.requests[i];
    if (request.conversation >= 0) {
      const auto [found, is_new] = of_conversation.emplace(request.conversation, chains.size());
      if (!is_new) {
        chains[found->second].requests.push_back(i);
        continue;
      }
    }
    chains.push_back({.requests = {i}, .at_s = request.at_s});
  }
  std::stable_sort(chains.begin(), chains.end(),
                   [](const Chain& a, const Chain& b) { return a.at_s < b.at_s; });
  return chains;
}

bool HaveOwnTimes(const std::vector<Chain>& chains) {
  return !chains.empty() && chains.back().at_s >= 0;
}

}  // namespace vivace::load
