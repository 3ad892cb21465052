#include "tune/trial.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace vivace::tune {
namespace {

namespace json = boost::json;

constexpr size_t kMostSamples = 100'000;

// Members of an object by name; the first that is missing or no number is the fault.
class Reader {
 public:
  explicit Reader(const json::value& value) : object_(value.if_object()) {
    if (object_ == nullptr) fault_ = "an object";
  }

  double Number(std::string_view name) {
    const json::value* value = Find(name);
    if (value == nullptr) return 0;
    boost::system::error_code error;
    const auto number = value->to_number<double>(error);
    if (error || !std::isfinite(number)) Miss(name);
    return error ? 0 : number;
  }
  int64_t Integer(std::string_view name) {
    const double number = Number(name);
    if (std::abs(number) > 1e15) Miss(name);
    return std::abs(number) > 1e15 ? 0 : static_cast<int64_t>(number);
  }
  bool Bool(std::string_view name) {
    const json::value* value = Find(name);
    if (value != nullptr && !value->is_bool()) Miss(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  }
  std::string Text(std::string_view name) {
    const json::value* value = Find(name);
    if (value != nullptr && !value->is_string()) Miss(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  }
  const json::value& Member(std::string_view name) {
    static const json::value kNull;
    const json::value* value = Find(name);
    return value == nullptr ? kNull : *value;
  }
  Status status() const {
    if (fault_.empty()) return {};
    return Fail(ErrorCode::kCorruptData, "bad_member", fault_, "\"{}\" is missing or wrong",
                fault_);
  }
  void Miss(std::string_view name) {
    if (fault_.empty()) fault_ = name;
  }

 private:
  const json::value* Find(std::string_view name) {
    const json::value* value = object_ == nullptr ? nullptr : object_->if_contains(name);
    if (value == nullptr) Miss(name);
    return value;
  }

  const json::object* object_;
  std::string fault_;
};

json::object DistributionJson(const load::Distribution& d) {
  return {{"n", d.n},     {"mean", d.mean}, {"p50", d.p50}, {"p90", d.p90},
          {"p95", d.p95}, {"p99", d.p99},   {"max", d.max}};
}

load::Distribution DistributionFrom(Reader* parent, std::string_view name) {
  Reader reader(parent->Member(name));
  load::Distribution d;
  d.n = reader.Integer("n");
  d.mean = reader.Number("mean");
  d.p50 = reader.Number("p50");
  d.p90 = reader.Number("p90");
  d.p95 = reader.Number("p95");
  d.p99 = reader.Number("p99");
  d.max = reader.Number("max");
  if (!reader.status()) parent->Miss(name);
  return d;
}

json::object UseJson(const bench::EngineUse& use) {
  return {{"steps", use.steps},
          {"mean_step_ms", use.mean_step_ms},
          {"p99_step_ms", use.p99_step_ms},
          {"mean_batch", use.mean_batch},
          {"peak_batch", use.peak_batch},
          {"mean_step_tokens", use.mean_step_tokens},
          {"peak_step_tokens", use.peak_step_tokens},
          {"mean_waiting", use.mean_waiting},
          {"preemptions", use.preemptions},
          {"prefix_hit_rate", use.prefix_hit_rate},
          {"busy_share", use.busy_share},
          {"kernel_share", use.kernel_share},
          {"sample_share", use.sample_share}};
}

bench::EngineUse UseFrom(Reader* parent) {
  Reader reader(parent->Member("engine"));
  bench::EngineUse use;
  use.steps = reader.Integer("steps");
  use.mean_step_ms = reader.Number("mean_step_ms");
  use.p99_step_ms = reader.Number("p99_step_ms");
  use.mean_batch = reader.Number("mean_batch");
  use.peak_batch = static_cast<int32_t>(reader.Integer("peak_batch"));
  use.mean_step_tokens = reader.Number("mean_step_tokens");
  use.peak_step_tokens = static_cast<int32_t>(reader.Integer("peak_step_tokens"));
  use.mean_waiting = reader.Number("mean_waiting");
  use.preemptions = reader.Integer("preemptions");
  use.prefix_hit_rate = reader.Number("prefix_hit_rate");
  use.busy_share = reader.Number("busy_share");
  use.kernel_share = reader.Number("kernel_share");
  use.sample_share = reader.Number("sample_share");
  if (!reader.status()) parent->Miss("engine");
  return use;
}

Measured MeasuredFrom(Reader* parent) {
  Reader reader(parent->Member("measured"));
  Measured m;
  load::Figures& f = m.figures;
  f.requests = reader.Integer("requests");
  f.completed = reader.Integer("completed");
  f.failed = reader.Integer("failed");
  f.duration_s = reader.Number("duration_s");
  f.input_tokens = reader.Integer("input_tokens");
  f.output_tokens = reader.Integer("output_tokens");
  f.request_throughput = reader.Number("request_throughput");
  f.output_throughput = reader.Number("output_throughput");
  f.total_throughput = reader.Number("total_throughput");
  f.mean_concurrency = reader.Number("mean_concurrency");
  f.ttft_ms = DistributionFrom(&reader, "ttft_ms");
  f.tpot_ms = DistributionFrom(&reader, "tpot_ms");
  f.itl_ms = DistributionFrom(&reader, "itl_ms");
  f.e2el_ms = DistributionFrom(&reader, "e2el_ms");
  m.use = UseFrom(&reader);
  m.elapsed_s = reader.Number("elapsed_s");
  m.partial = reader.Bool("partial");
  if (!reader.status()) parent->Miss("measured");
  return m;
}

}  // namespace

json::object ToJson(const Setting& setting) {
  return {{"max_num_seqs", setting.max_num_seqs},
          {"max_num_batched_tokens", setting.max_num_batched_tokens},
          {"max_itl", setting.max_itl_ms},
          {"kv_cache_dtype", KvName(setting)},
          {"threads", setting.threads}};
}

json::object ToJson(const Measured& measured) {
  const load::Figures& f = measured.figures;
  return {{"requests", f.requests},
          {"completed", f.completed},
          {"failed", f.failed},
          {"duration_s", f.duration_s},
          {"input_tokens", f.input_tokens},
          {"output_tokens", f.output_tokens},
          {"request_throughput", f.request_throughput},
          {"output_throughput", f.output_throughput},
          {"total_throughput", f.total_throughput},
          {"mean_concurrency", f.mean_concurrency},
          {"ttft_ms", DistributionJson(f.ttft_ms)},
          {"tpot_ms", DistributionJson(f.tpot_ms)},
          {"itl_ms", DistributionJson(f.itl_ms)},
          {"e2el_ms", DistributionJson(f.e2el_ms)},
          {"engine", UseJson(measured.use)},
          {"elapsed_s", measured.elapsed_s},
          {"partial", measured.partial}};
}

json::object ToJson(const Trial& trial) {
  json::object object = {{"setting", ToJson(trial.setting)}, {"took_s", trial.took_s}};
  if (!trial.error.empty()) {
    object["error"] = trial.error;
  } else {
    object["measured"] = ToJson(trial.measured);
    object["steps"] = ToJson(trial.steps);
  }
  return object;
}

// A row each: decodes, their context, prompt rows, their context, their logit rows, seconds.
json::array ToJson(const std::vector<bench::StepSample>& samples) {
  json::array rows;
  for (const bench::StepSample& sample : samples) {
    const StepShape& s = sample.shape;
    rows.push_back(json::array{s.decodes, s.decode_context, s.prompt_rows, s.prompt_context,
                               s.prompt_logit_rows, sample.seconds});
  }
  return rows;
}

Result<Setting> SettingFromJson(const json::value& value) {
  Reader reader(value);
  Setting setting;
  setting.max_num_seqs = static_cast<int32_t>(reader.Integer("max_num_seqs"));
  setting.max_num_batched_tokens = static_cast<int32_t>(reader.Integer("max_num_batched_tokens"));
  setting.max_itl_ms = reader.Number("max_itl");
  setting.threads = static_cast<int32_t>(reader.Integer("threads"));
  const std::string kv = reader.Text("kv_cache_dtype");
  if (kv != "auto") {
    setting.kv_cache_dtype = kernels::ParseKvDType(kv);
    if (!setting.kv_cache_dtype) reader.Miss("kv_cache_dtype");
  }
  VIVACE_RETURN_IF_ERROR(reader.status());
  EngineConfig config;
  Apply(setting, &config);
  VIVACE_RETURN_IF_ERROR(Validate(config));
  return setting;
}

Result<Trial> TrialFromJson(const json::value& value) {
  Reader reader(value);
  Trial trial;
  VIVACE_ASSIGN(trial.setting, SettingFromJson(reader.Member("setting")));
  trial.took_s = reader.Number("took_s");
  VIVACE_RETURN_IF_ERROR(reader.status());
  if (value.get_object().contains("error")) {
    trial.error = reader.Text("error");
  } else {
    trial.measured = MeasuredFrom(&reader);
    VIVACE_ASSIGN(trial.steps, SamplesFromJson(reader.Member("steps")));
  }
  VIVACE_RETURN_IF_ERROR(reader.status());
  return trial;
}

Result<std::vector<bench::StepSample>> SamplesFromJson(const json::value& value) {
  const auto refuse = [] {
    return Fail(ErrorCode::kCorruptData, "bad_member", "steps",
                "\"steps\" is no list of rows of six numbers");
  };
  const json::array* rows = value.if_array();
  if (rows == nullptr || rows->size() > kMostSamples) return refuse();
  std::vector<bench::StepSample> samples;
  for (const json::value& row : *rows) {
    const json::array* cells = row.if_array();
    if (cells == nullptr || cells->size() != 6) return refuse();
    std::array<double, 6> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      boost::system::error_code error;
      numbers[i] = (*cells)[i].to_number<double>(error);
      const double most = i == 0 || i == 2 || i == 4 ? 1e9 : 1e15;
      if (error || !(numbers[i] >= 0 && numbers[i] <= most)) return refuse();
    }
    samples.push_back({.shape = {.decodes = static_cast<int32_t>(numbers[0]),
                                 .decode_context = static_cast<int64_t>(numbers[1]),
                                 .prompt_rows = static_cast<int32_t>(numbers[2]),
                                 .prompt_context = static_cast<int64_t>(numbers[3]),
                                 .prompt_logit_rows = static_cast<int32_t>(numbers[4])},
                       .seconds = numbers[5]});
  }
  return samples;
}

}  // namespace vivace::tune
