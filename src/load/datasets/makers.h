// The kinds of datasets, a file each; dataset.cc is the table of them. Options were checked.
#pragma once

#include "load/datasets/dataset.h"

namespace vivace::load {

Result<Workload> MakeRandom(const DatasetOptions& options, TokenCounter* counter);
Result<Workload> MakeRandomWords(const DatasetOptions& options, TokenCounter* counter);
Result<Workload> MakeSharedPrefix(const DatasetOptions& options, TokenCounter* counter);
Result<Workload> MakeMultiTurn(const DatasetOptions& options, TokenCounter* counter);
Result<Workload> MakeShareGpt(const DatasetOptions& options, TokenCounter* counter);
Result<Workload> MakeJsonl(const DatasetOptions& options, TokenCounter* counter);
Result<Workload> MakeTrace(const DatasetOptions& options, TokenCounter* counter);

// Adds a request, or refuses one too many bytes.
class WorkloadBuilder {
 public:
  WorkloadBuilder(std::string name, uint64_t seed);
  Status Add(PlannedRequest request);
  size_t size() const { return workload_.requests.size(); }
  Workload Finish(std::string_view remark);  // appended to the name

 private:
  Workload workload_;
  uint64_t bytes_ = 0;
};

// Purposes of a seed's streams (Random): one for each thing that is drawn.
inline constexpr uint64_t kPromptPurpose = 1ull << 40;  // + the index of the request
inline constexpr uint64_t kPrefixPurpose = 2ull << 40;  // + the index of the prefix
inline constexpr uint64_t kShufflePurpose = 3ull << 40;
inline constexpr uint64_t kBlockPurpose = 4ull << 40;  // a trace's hash id is mixed in

}  // namespace vivace::load
