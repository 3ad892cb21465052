#include "tune/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "bench/offline.h"
#include "bench/turn_encoder.h"
#include "engine/weight_cache/digest.h"
#include "load/arrivals.h"
#include "load/chains.h"
#include "load/datasets/tokenizer_counter.h"

namespace vivace::tune {
namespace {

// Makes `turns` of the workload.
Status FillTurns(const ModelText& text, Traffic* traffic) {
  bench::TurnEncoder encoder(&text);
  traffic->turns.clear();
  for (const load::PlannedRequest& request : traffic->workload.requests) {
    bench::Conversation fresh;
    VIVACE_ASSIGN(std::vector<TokenId> tokens, encoder.Prompt(request, &fresh));
    if (tokens.empty()) tokens.push_back(0);
    traffic->turns.push_back(std::move(tokens));
  }
  return {};
}

// Values one after another, each list after its length.
class Bytes {
 public:
  template <typename T>
  void Add(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  template <typename T>
  void AddAll(std::span<const T> values) {
    Add(values.size());
    for (const T& value : values) Add(value);
  }
  void Add(const load::Messages& messages) {
    Add(messages.size());
    for (const load::Message& message : messages) {
      AddAll(std::span<const char>(message.role));
      AddAll(std::span<const char>(message.content));
    }
  }
  uint64_t Digest() const { return weight_cache::Digest(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<Traffic> MakeTraffic(const TuneOptions& options, const ModelText& text, size_t requests) {
  load::DatasetOptions dataset = options.dataset;
  dataset.num_prompts = requests;
  load::TokenizerCounter counter(text.tokenizer);
  Traffic traffic;
  VIVACE_ASSIGN(traffic.workload, load::MakeWorkload(dataset, &counter));
  if (traffic.workload.requests.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "dataset-name",
                "the dataset has no request to send");
  }
  VIVACE_RETURN_IF_ERROR(load::CheckSlos(options.slo, traffic.workload, "slo"));
  traffic.max_concurrency = options.max_concurrency;
  if (options.request_rate > 0) {
    traffic.arrivals = load::Arrivals({.rate = options.request_rate,
                                       .burstiness = options.burstiness,
                                       .seed = options.dataset.seed},
                                      load::ChainsOf(traffic.workload).size());
  }
  VIVACE_RETURN_IF_ERROR(FillTurns(text, &traffic));
  return traffic;
}

std::string DigestOf(const Traffic& traffic) {
  Bytes bytes;
  for (const load::PlannedRequest& request : traffic.workload.requests) {
    bytes.Add(request.prompt.index());
    if (const auto* messages = std::get_if<load::Messages>(&request.prompt)) {
      bytes.Add(*messages);
    } else if (const auto* ids = std::get_if<load::PromptIds>(&request.prompt)) {
      bytes.AddAll(std::span<const int32_t>(*ids));
    } else {
      bytes.AddAll(std::span<const char>(std::get<std::string>(request.prompt)));
    }
    bytes.Add(request.output_tokens);
    bytes.Add(request.conversation);
    bytes.Add(request.at_s);
  }
  bytes.AddAll(std::span<const double>(traffic.arrivals));
  bytes.Add(traffic.max_concurrency);
  return fmt::format("{:016x}", bytes.Digest());
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
