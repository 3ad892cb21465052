#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "load/report/fields.h"
#include "load/report/json_writer.h"
#include "load/report/record_fields.h"
#include "load/report/report.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

// Of this file. 2: the gaps of completed requests are only in "itls".
constexpr int kFormat = 2;

void AddValidity(JsonWriter& json, const RunResult& run) {
  const auto why = InvalidBecause(run);
  json.Key("valid").Bool(why.empty());
  json.Key("invalid_because").Texts(why);
  json.Key("warnings").Texts(Warnings(run));
  json.Key("partial").Bool(run.partial).Key("note").Text(run.note);
}

void Settings(JsonWriter& json, const RunResult& run) {
  const auto seconds = static_cast<std::time_t>(run.started_unix_ms / 1000);
  json.Key("date").Text(fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(seconds)));
  json.Key("started_unix_ms").Int(run.started_unix_ms);
  json.Key("label").Text(run.label).Key("model_id").Text(run.model);
  json.Key("base_url").Text(run.base_url).Key("endpoint").Text(run.endpoint);
  json.Key("workload").Text(run.workload);
  // As text: a number of 64 bits is not one in every reader.
  json.Key("seed").Text(fmt::to_string(run.seed));
  json.Key("shared_prompts").Number(run.shared_prompts);
  json.Key("num_prompts").Int(run.figures.requests);
  json.Key("max_concurrency");
  run.max_concurrency > 0 ? json.Int(run.max_concurrency) : json.Null();
  json.Key("request_rate");
  run.request_rate > 0 && std::isfinite(run.request_rate) ? json.Number(run.request_rate)
                                                          : json.Text("inf");
  json.Key("burstiness");
  std::isfinite(run.burstiness) ? json.Number(run.burstiness) : json.Text("inf");
  if (run.ramp != ArrivalOptions::Ramp::kNone) {
    json.Key("ramp_up_strategy").Text(Name(run.ramp));
    json.Key("ramp_up_start_rps").Number(run.ramp_from);
    json.Key("ramp_up_end_rps").Number(run.ramp_to);
  }
  json.Key("own_times").Bool(run.own_times);
}

void AddMember(JsonWriter& json, const Figures& figures, const FigureField& field) {
  json.Key(field.name);
  std::visit(
      [&](auto member) {
        const auto value = figures.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          json.Bool(value);
        } else if (field.may_lack && value < 0) {
          json.Null();
        } else if constexpr (std::is_floating_point_v<T>) {
          json.Number(value);
        } else {
          json.Int(value);
        }
      },
      field.member);
}

void AllFigures(JsonWriter& json, const Figures& figures) {
  for (const FigureField& field : FigureFields()) AddMember(json, figures, field);
  for (const LatencyField& latency : LatencyFields()) {
    const Distribution& d = figures.*latency.member;
    json.Key(fmt::format("n_{}", latency.name)).Int(d.n);
    for (const StatField& stat : StatFields()) {
      json.Key(StatName(stat, latency));
      d.n > 0 ? json.Number(d.*stat.member) : json.Null();
    }
  }
  json.Key("failures").BeginObject();
  for (const auto& [reason, count] : figures.failures) json.Key(reason).Int(count);
  json.EndObject();
}

void Surroundings(JsonWriter& json, const RunResult& run) {
  json.Key("promises").BeginArray();
  for (const Promise& promise : run.promises) {
    json.BeginObject().Key("what").Text(Name(promise.what));
    json.Key("most_ms").Number(promise.most_ms).EndObject();
  }
  json.EndArray().Key("client").BeginObject();
  json.Key("cpu_share").Number(run.client.cpu_share);
  json.Key("loop_lag_p99_ms").Number(run.client.loop_lag_p99_ms);
  json.Key("bottleneck").Bool(run.client.bottleneck).Key("why").Text(run.client.why).EndObject();
  json.Key("environment").BeginObject();
  for (const auto& [name, value] : run.environment) json.Key(name).Text(value);
  json.EndObject().Key("server_samples").BeginArray();
  for (const ServerSample& s : run.server) {
    json.BeginObject();
    for (const SampleField& field : SampleFields()) json.Key(field.name).Number(s.*field.member);
    json.EndObject();
  }
  json.EndArray().Key("definitions").BeginObject();
  for (const Definition& d : Definitions()) json.Key(d.name).Text(d.text);
  json.EndObject();
}

// vLLM's arrays of --save-detailed, in seconds; requests that failed have 0 and none.
void DetailsLikeVllm(JsonWriter& json, const RunResult& run, int64_t origin) {
  const auto each = [&](std::string_view key, auto write) {
    json.Key(key).BeginArray();
    for (const RequestRecord& r : run.records) write(r);
    json.EndArray();
  };
  each("input_lens", [&](const RequestRecord& r) { json.Int(r.prompt_tokens); });
  each("output_lens", [&](const RequestRecord& r) { json.Int(r.output_tokens); });
  each("start_times", [&](const RequestRecord& r) {
    json.Number(static_cast<double>(r.scheduled_ns - origin) / 1e9);
  });
  each("ttfts",
       [&](const RequestRecord& r) { json.Number(std::max(TimesOf(r).ttft_ms, 0.0) / 1e3); });
  each("itls", [&](const RequestRecord& r) {
    json.BeginArray();
    for (size_t i = 1; i < r.chunk_ns.size() && r.outcome == Outcome::kCompleted; ++i) {
      json.Number(static_cast<double>(r.chunk_ns[i] - r.chunk_ns[i - 1]) / 1e9);
    }
    json.EndArray();
  });
  each("errors", [&](const RequestRecord& r) {
    json.Text(r.outcome == Outcome::kCompleted ? ""
              : r.reason.empty()               ? Name(r.outcome)
                                               : r.reason);
  });
}

// vLLM's arrays have the gaps of what completed; they are most of a file, and not written twice.
bool GapsAreInItls(const RequestRecord& r) {
  return r.outcome == Outcome::kCompleted && !r.chunk_ns.empty() && r.first_ns == r.chunk_ns[0];
}

void AddRecord(JsonWriter& json, const RequestRecord& r, int64_t origin) {
  json.BeginObject().Key("outcome").Text(Name(r.outcome));
  for (const TimeField& field : TimeFields()) {
    json.Key(field.name);
    field.may_lack&& r.*field.member == 0 ? json.Null() : json.Int(r.*field.member - origin);
  }
  for (const CountField& field : CountFields()) json.Key(field.name).Int(r.*field.member);
  json.Key("counted").Bool(r.counted).Key("reason").Text(r.reason);
  json.Key("finish_reason").Text(r.finish_reason);
  json.Key("server_queue_ms").Number(r.server_queue_ms);
  if (!GapsAreInItls(r)) {
    json.Key("chunk_gaps_ns").BeginArray();
    for (size_t i = 0; i < r.chunk_ns.size(); ++i) {
      json.Int(r.chunk_ns[i] - (i == 0 ? origin : r.chunk_ns[i - 1]));
    }
    json.EndArray();
  }
  if (!r.empty_ns.empty()) {
    json.Key("empty_ns").BeginArray();
    for (int64_t at : r.empty_ns) json.Int(at - origin);
    json.EndArray();
  }
  if (!r.chunk_tokens.empty()) {
    json.Key("chunk_tokens").BeginArray();
    for (int32_t tokens : r.chunk_tokens) json.Int(tokens);
    json.EndArray();
  }
  json.EndObject();
}

// One before the first moment there is, because 0 says "never".
int64_t Origin(const RunResult& run) {
  int64_t first = run.started_ns != 0 ? run.started_ns : std::numeric_limits<int64_t>::max();
  for (const RequestRecord& r : run.records) first = std::min(first, r.scheduled_ns);
  return run.records.empty() ? 0 : first - 1;
}

void Run(JsonWriter& json, const RunResult& run, bool detailed) {
  json.BeginObject().Key("format").Int(kFormat);
  json.Key("tool").Text("vivace " VIVACE_VERSION);
  AddValidity(json, run);
  Settings(json, run);
  AllFigures(json, run.figures);
  Surroundings(json, run);
  if (detailed) {
    const int64_t origin = Origin(run);
    if (run.started_ns != 0) json.Key("started_ns").Int(run.started_ns - origin);
    DetailsLikeVllm(json, run, origin);
    json.Key("requests").BeginArray();
    for (const RequestRecord& record : run.records) AddRecord(json, record, origin);
    json.EndArray();
  }
  json.EndObject();
}

}  // namespace

std::string ReportJson(const std::vector<RunResult>& runs, bool detailed, std::string_view search) {
  std::string out;
  JsonWriter json(&out);
  if (runs.size() == 1 && search.empty()) {
    Run(json, runs[0], detailed);
    return out;
  }
  json.BeginObject();
  if (!search.empty()) json.Key("search").Json(search);
  json.Key("runs").BeginArray();
  for (const RunResult& run : runs) Run(json, run, detailed);
  json.EndArray().EndObject();
  return out;
}

}  // namespace vivace::load
