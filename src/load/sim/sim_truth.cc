#include "load/sim/sim_truth.h"

#include <fmt/format.h>

#include <iterator>

#include "base/json_text.h"
#include "load/record.h"

namespace vivace::load {
namespace {

void AppendTruth(const SimTruth& truth, std::string* out) {
  const auto add = [out](fmt::string_view format, const auto&... values) {
    fmt::vformat_to(std::back_inserter(*out), format, fmt::make_format_args(values...));
  };
  *out += R"({"id":)";
  AppendJsonString(*out, truth.id);
  add(R"(,"arrived_ns":{},"started_ns":{},"prompt_tokens":{},"output_tokens":{},"outcome":"{}")",
      truth.arrived_ns, truth.started_ns, truth.prompt_tokens, truth.tokens, truth.outcome);
  if (truth.started_ns != 0)
    add(R"(,"queue_ms":{:.6f})", Millis(truth.started_ns - truth.arrived_ns));
  if (truth.events_ns.empty()) {
    *out += R"(,"first_ns":null,"last_ns":null,"ttft_ms":null,"e2e_ms":null)";
  } else {
    add(R"(,"first_ns":{},"last_ns":{},"ttft_ms":{:.6f},"e2e_ms":{:.6f})", truth.events_ns.front(),
        truth.events_ns.back(), Millis(truth.events_ns.front() - truth.arrived_ns),
        Millis(truth.events_ns.back() - truth.arrived_ns));
  }
  *out += R"(,"gaps_ms":[)";
  for (size_t i = 1; i < truth.events_ns.size(); ++i) {
    if (i > 1) *out += ',';
    add("{:.6f}", Millis(truth.events_ns[i] - truth.events_ns[i - 1]));
  }
  *out += fmt::format(R"(],"event_tokens":[{}]}})", fmt::join(truth.event_tokens, ","));
}

}  // namespace

std::string TruthJson(const std::vector<SimTruth>& truths) {
  std::string out = R"({"requests":[)";
  for (const SimTruth& truth : truths) {
    if (!out.ends_with('[')) out += ",\n";
    AppendTruth(truth, &out);
  }
  return out + "]}";
}

}  // namespace vivace::load
