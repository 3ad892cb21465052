// Reports back from their JSON. Files are whoever's: types and ranges are checked, and what is not
// there stays at its default, so that a result file of vLLM's reads as far as it goes.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/json_members.h"
#include "base/limits.h"
#include "base/mapped_file.h"
#include "load/report/fields.h"
#include "load/report/record_fields.h"
#include "load/report/report.h"

namespace vivace::load {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr double kMostExact = 9e15;  // integers that a double holds
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Members of one object; the first wrong one is remembered and ends the reading of the file.
class ObjectReader {
 public:
  ObjectReader(const object& from, Status* status) : from_(from), status_(status) {}

  const value* Find(std::string_view name) const { return FindPresent(from_, name); }
  double Number(std::string_view name, double otherwise) const {
    const value* found = Find(name);
    if (found == nullptr) return otherwise;
    if (found->is_string() && found->get_string() == "inf") return INFINITY;
    if (!found->is_number()) return Wrong(name, "a number"), otherwise;
    return found->to_number<double>();
  }
  int64_t Int(std::string_view name, int64_t otherwise, double least = -kMostExact,
              double most = kMostExact) const {
    const double number = Number(name, static_cast<double>(otherwise));
    if (!(number >= least && number <= most)) return Wrong(name, "in range"), otherwise;
    return static_cast<int64_t>(number);
  }
  int32_t Int32(std::string_view name, int32_t otherwise) const {
    return static_cast<int32_t>(Int(name, otherwise, std::numeric_limits<int32_t>::min(),
                                    std::numeric_limits<int32_t>::max()));
  }
  std::string Text(std::string_view name) const {
    const value* found = Find(name);
    if (found == nullptr) return {};
    if (!found->is_string()) return Wrong(name, "a text"), std::string();
    return std::string(found->get_string());
  }
  bool Bool(std::string_view name) const {
    const value* found = Find(name);
    if (found == nullptr) return false;
    if (!found->is_bool()) return Wrong(name, "true or false"), false;
    return found->get_bool();
  }
  const array& Array(std::string_view name) const {
    static const array kEmpty;
    const value* found = Find(name);
    if (found == nullptr) return kEmpty;
    if (!found->is_array()) return Wrong(name, "an array"), kEmpty;
    return found->get_array();
  }
  const object& Object(std::string_view name) const {
    static const object kEmpty;
    const value* found = Find(name);
    if (found == nullptr) return kEmpty;
    if (!found->is_object()) return Wrong(name, "an object"), kEmpty;
    return found->get_object();
  }
  ObjectReader Of(const value& item, std::string_view name) const {
    static const object kEmpty;
    if (!item.is_object()) Wrong(name, "made of objects");
    return {item.is_object() ? item.get_object() : kEmpty, status_};
  }
  void Wrong(std::string_view name, std::string_view wanted) const {
    if (!*status_) return;
    *status_ = Fail(ErrorCode::kCorruptData, "bad_report", std::string(name), "\"{}\" is not {}",
                    name, wanted);
  }
  bool ok() const { return status_->has_value(); }

 private:
  const object& from_;
  Status* status_;
};

void ReadFigures(const ObjectReader& in, Figures* f) {
  for (const FigureField& field : FigureFields()) {
    std::visit(
        [&](auto member) {
          using T = std::decay_t<decltype(f->*member)>;
          if constexpr (std::is_same_v<T, bool>) {
            f->*member = in.Bool(field.name);
          } else if constexpr (std::is_floating_point_v<T>) {
            f->*member = in.Number(field.name, field.may_lack ? -1 : 0);
          } else {
            f->*member = static_cast<T>(
                in.Int(field.name, 0, 0,
                       std::min(kMostExact, static_cast<double>(std::numeric_limits<T>::max()))));
          }
        },
        field.member);
  }
  for (const LatencyField& latency : LatencyFields()) {
    Distribution& d = f->*latency.member;
    const bool there = in.Find(fmt::format("mean_{}_ms", latency.name)) != nullptr;
    d.n = in.Int(fmt::format("n_{}", latency.name), there ? f->completed : 0, 0);
    if (d.n == 0) continue;
    for (const StatField& stat : StatFields()) {
      // "median" and "p50" are one member: the later name must not take away what the first gave.
      const std::string name = StatName(stat, latency);
      const bool second = stat.name == "p50" && in.Find(name) == nullptr;
      if (!second) d.*stat.member = in.Number(name, kNone);
    }
  }
  for (const auto& [reason, count] : in.Object("failures")) {
    if (count.is_int64()) f->failures[std::string(reason)] = count.get_int64();
  }
}

void ReadPromises(const ObjectReader& in, RunResult* run) {
  for (const value& item : in.Array("promises")) {
    const ObjectReader promise = in.Of(item, "promises");
    const std::string what = promise.Text("what");
    for (int i = 0; i < 4; ++i) {
      const auto kind = static_cast<Promise::What>(i);
      if (what == Name(kind)) run->promises.push_back({kind, promise.Number("most_ms", 0)});
    }
  }
}

void ReadSettings(const ObjectReader& in, RunResult* run) {
  run->label = in.Text("label");
  run->base_url = in.Text("base_url");
  run->endpoint = in.Text("endpoint");
  run->model = in.Text("model_id");
  run->workload = in.Text("workload");
  run->note = in.Text("note");
  run->partial = in.Bool("partial");
  if (const value* seed = in.Find("seed"); seed != nullptr && seed->is_string()) {
    run->seed = std::strtoull(std::string(seed->get_string()).c_str(), nullptr, 10);
  }
  run->max_concurrency = in.Int32("max_concurrency", 0);
  const double rate = in.Number("request_rate", 0);
  run->request_rate = std::isfinite(rate) ? rate : 0;
  run->burstiness = in.Number("burstiness", 1);
  run->ramp = RampNamed(in.Text("ramp_up_strategy"));
  run->ramp_from = in.Number("ramp_up_start_rps", 0);
  run->ramp_to = in.Number("ramp_up_end_rps", 0);
  run->own_times = in.Bool("own_times");
  run->started_unix_ms = in.Int("started_unix_ms", 0);
  run->started_ns = in.Int("started_ns", 0);
  run->shared_prompts = in.Number("shared_prompts", 1);
  for (const auto& [name, text] : in.Object("environment")) {
    if (text.is_string()) run->environment[std::string(name)] = std::string(text.get_string());
  }
}

void ReadSurroundings(const ObjectReader& in, RunResult* run) {
  ReadPromises(in, run);
  if (const value* client = in.Find("client"); client != nullptr) {
    const ObjectReader c = in.Of(*client, "client");
    run->client = {c.Number("cpu_share", 0), c.Number("loop_lag_p99_ms", 0), c.Bool("bottleneck"),
                   c.Text("why")};
  }
  for (const value& item : in.Array("server_samples")) {
    const ObjectReader from = in.Of(item, "server_samples");
    ServerSample sample;
    for (const SampleField& field : SampleFields()) {
      sample.*field.member = from.Number(field.name, -1);
    }
    run->server.push_back(sample);
  }
}

std::vector<double> Numbers(const ObjectReader& in, std::string_view name, const array& items) {
  std::vector<double> numbers;
  numbers.reserve(items.size());
  for (const value& item : items) {
    if (!item.is_number()) {
      in.Wrong(name, "made of numbers");
      break;
    }
    numbers.push_back(item.to_number<double>());
  }
  return numbers;
}

// Moments from the gaps between them, in nanoseconds times `scale`; the first counts from the last
// moment there is, or from 0.
void AppendGapsOf(const ObjectReader& in, std::string_view name, const array& gaps, double scale,
                  std::vector<int64_t>* moments) {
  double at = moments->empty() ? 0 : static_cast<double>(moments->back());
  for (double gap : Numbers(in, name, gaps)) {
    at += std::round(gap * scale);
    if (!(gap >= 0 && at <= kMostExact)) {
      in.Wrong(name, "made of gaps between moments");
      return;
    }
    moments->push_back(static_cast<int64_t>(at));
  }
}

Outcome OutcomeNamed(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Outcome::kNotRun); ++i) {
    if (name == Name(static_cast<Outcome>(i))) return static_cast<Outcome>(i);
  }
  return Outcome::kGarbage;
}

// `gaps_s`: of vLLM's "itls", where the gaps of completed requests are; null: it has none.
RequestRecord ReadRecord(const ObjectReader& in, const value* gaps_s) {
  RequestRecord r;
  r.outcome = OutcomeNamed(in.Text("outcome"));
  for (const TimeField& field : TimeFields()) r.*field.member = in.Int(field.name, 0);
  for (const CountField& field : CountFields()) r.*field.member = in.Int32(field.name, 0);
  r.counted = in.Bool("counted");
  r.reason = in.Text("reason");
  r.finish_reason = in.Text("finish_reason");
  r.server_queue_ms = in.Number("server_queue_ms", -1);
  const bool of_itls = in.Find("chunk_gaps_ns") == nullptr && r.first_ns > 0 && gaps_s != nullptr &&
                       gaps_s->is_array();
  if (of_itls) {
    r.chunk_ns.push_back(r.first_ns);
    AppendGapsOf(in, "itls", gaps_s->get_array(), 1e9, &r.chunk_ns);
  } else {
    AppendGapsOf(in, "chunk_gaps_ns", in.Array("chunk_gaps_ns"), 1, &r.chunk_ns);
  }
  for (double at : Numbers(in, "empty_ns", in.Array("empty_ns"))) {
    if (!(at >= 0 && at <= kMostExact)) {
      in.Wrong("empty_ns", "made of moments in nanoseconds");
      break;
    }
    r.empty_ns.push_back(static_cast<int64_t>(at));
  }
  for (double tokens : Numbers(in, "chunk_tokens", in.Array("chunk_tokens"))) {
    if (!(tokens >= 0 && tokens <= std::numeric_limits<int32_t>::max())) {
      in.Wrong("chunk_tokens", "made of counts");
      break;
    }
    r.chunk_tokens.push_back(static_cast<int32_t>(tokens));
  }
  return r;
}

// vLLM's arrays of --save-detailed. Moments count from start_times where those are there.
std::vector<RequestRecord> RecordsOfVllm(const ObjectReader& in) {
  const auto ttfts = Numbers(in, "ttfts", in.Array("ttfts"));
  const auto inputs = Numbers(in, "input_lens", in.Array("input_lens"));
  const auto outputs = Numbers(in, "output_lens", in.Array("output_lens"));
  const auto starts = Numbers(in, "start_times", in.Array("start_times"));
  const array& itls = in.Array("itls");
  const array& errors = in.Array("errors");
  std::vector<RequestRecord> records;
  const auto ns = [](double seconds) {
    return static_cast<int64_t>(std::clamp(seconds, 0.0, kMostExact / 1e9) * 1e9);
  };
  const auto count = [](const std::vector<double>& counts, size_t i) {
    return i < counts.size() ? static_cast<int32_t>(std::clamp(counts[i], 0.0, 2e9)) : 0;
  };
  const double origin = starts.empty() ? 0 : *std::min_element(starts.begin(), starts.end());
  for (size_t i = 0; i < ttfts.size() && in.ok(); ++i) {
    RequestRecord r;
    r.index = static_cast<int32_t>(i);
    r.scheduled_ns = r.sent_ns = 1 + (i < starts.size() ? ns(starts[i] - origin) : 0);
    r.prompt_tokens = count(inputs, i);
    r.output_tokens = count(outputs, i);
    r.counted = true;
    if (i < errors.size() && errors[i].is_string()) r.reason = std::string(errors[i].get_string());
    if (!r.reason.empty() || !(ttfts[i] > 0)) {
      r.outcome = Outcome::kRefused;
      records.push_back(std::move(r));
      continue;
    }
    r.outcome = Outcome::kCompleted;
    r.first_ns = r.last_ns = r.scheduled_ns + ns(ttfts[i]);
    r.chunk_ns.push_back(r.first_ns);
    if (i < itls.size() && itls[i].is_array()) {
      AppendGapsOf(in, "itls", itls[i].get_array(), 1e9, &r.chunk_ns);
      r.last_ns = r.chunk_ns.back();
    }
    r.ended_ns = r.last_ns;
    records.push_back(std::move(r));
  }
  return records;
}

// What vLLM's file does not say and its arrays do.
void CompleteFromRecords(bool has_starts, RunResult* run) {
  const Figures of_records = ComputeFigures(run->records, {});
  Figures& f = run->figures;
  for (const LatencyField& latency : LatencyFields()) {
    const Distribution& from = of_records.*latency.member;
    Distribution& to = f.*latency.member;
    // Their clock starts when a request is sent: of queueing these records know nothing.
    if (latency.name.ends_with("queue") || latency.name == "send_lag" || from.n == 0) continue;
    if (to.n == 0) {
      to = from;
      continue;
    }
    to.n = from.n;
    for (const StatField& stat : StatFields()) {
      if (std::isnan(to.*stat.member)) to.*stat.member = from.*stat.member;
    }
  }
  f.tokens_per_chunk = of_records.tokens_per_chunk;
  f.failures = of_records.failures;
  if (!has_starts) return;
  f.peak_concurrency = of_records.peak_concurrency;
  f.mean_concurrency = of_records.mean_concurrency;
  f.steady_s = of_records.steady_s;
  f.steady_output_throughput = of_records.steady_output_throughput;
  if (f.peak_second_tokens < 0) f.peak_second_tokens = of_records.peak_second_tokens;
}

Result<RunResult> ReadRun(const object& from) {
  Status status;
  const ObjectReader in(from, &status);
  RunResult run;
  if (in.Find("completed") == nullptr || in.Find("duration") == nullptr) {
    return Fail(ErrorCode::kCorruptData, "bad_report", "completed",
                "no \"completed\" and \"duration\": not a result of a serving benchmark");
  }
  ReadSettings(in, &run);
  ReadFigures(in, &run.figures);
  ReadSurroundings(in, &run);
  const array& itls = in.Array("itls");
  for (const value& item : in.Array("requests")) {
    if (!status) break;
    const size_t i = run.records.size();
    run.records.push_back(
        ReadRecord(in.Of(item, "requests"), i < itls.size() ? &itls[i] : nullptr));
  }
  if (run.records.empty()) {
    run.records = RecordsOfVllm(in);
    if (!run.records.empty()) CompleteFromRecords(in.Find("start_times") != nullptr, &run);
  }
  if (run.figures.requests == 0) run.figures.requests = in.Int("num_prompts", 0, 0);
  if (run.label.empty()) run.label = LabelOf(run);
  if (!status) return tl::unexpected<Error>(status.error());
  return run;
}

Result<std::vector<const object*>> FindRuns(const value& root) {
  std::vector<const object*> runs;
  const auto add = [&](const value& item) {
    if (item.is_object()) runs.push_back(&item.get_object());
    return item.is_object();
  };
  const value* list = root.is_object()  ? root.get_object().if_contains("runs")
                      : root.is_array() ? &root
                                        : nullptr;
  if (list == nullptr) {
    if (!add(root)) {
      return Fail(ErrorCode::kCorruptData, "bad_report", "", "not a JSON object");
    }
    return runs;
  }
  if (!list->is_array() || list->get_array().empty() ||
      list->get_array().size() > limits::kMaxReportRuns) {
    return Fail(ErrorCode::kCorruptData, "bad_report", "runs", "\"runs\" is not a list of 1 to {}",
                limits::kMaxReportRuns);
  }
  for (const value& item : list->get_array()) {
    if (!add(item)) {
      return Fail(ErrorCode::kCorruptData, "bad_report", "runs", "\"runs\" has no objects");
    }
  }
  return runs;
}

// One value; or a value a line, as `--append-result` leaves them.
Result<value> ParseJson(std::string_view text) {
  boost::system::error_code error;
  value whole = boost::json::parse({text.data(), text.size()}, error);
  if (!error) return whole;
  array lines;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = std::min(text.find('\n', pos), text.size());
    const std::string_view line = text.substr(pos, end - pos);
    pos = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    boost::system::error_code line_error;
    lines.push_back(boost::json::parse({line.data(), line.size()}, line_error));
    if (line_error) {
      return Fail(ErrorCode::kCorruptData, "bad_report", "", "not JSON: {}", error.message());
    }
  }
  if (lines.empty())
    return Fail(ErrorCode::kCorruptData, "bad_report", "", "not JSON: it is empty");
  return value(std::move(lines));
}

}  // namespace

Result<std::vector<RunResult>> ParseReport(std::string_view text, const std::string& name) {
  const auto named = [&](Error error) {
    error.message = fmt::format("{}: {}", name, error.message);
    return tl::unexpected<Error>(std::move(error));
  };
  const auto root = ParseJson(text);
  if (!root) return named(root.error());
  const auto objects = FindRuns(*root);
  if (!objects) return named(objects.error());
  std::vector<RunResult> runs;
  for (const object* from : *objects) {
    auto run = ReadRun(*from);
    if (!run) return named(run.error());
    runs.push_back(std::move(*run));
  }
  return runs;
}

Result<std::vector<RunResult>> ReadReport(const std::string& path) {
  VIVACE_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > limits::kMaxReportBytes) {
    return Fail(ErrorCode::kInvalidArgument, "report_too_large", "",
                "{} has {} bytes; a report may "
                "have {}",
                path, file.bytes().size(), limits::kMaxReportBytes);
  }
  return ParseReport({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                     path);
}

}  // namespace vivace::load
