#include "tune/run_journal.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/cpu.h"
#include "bench/machine_limits.h"
#include "engine/weight_cache/entry_key.h"
#include "kernels/fastest_isa.h"

namespace vivace::tune {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr int64_t kMostPlannedRequests = 1'000'000'000;

std::string PathOf(const TuneOptions& options) {
  return (fs::path(options.out) / "journal.jsonl").string();
}

json::object TrafficHeader(const TuneOptions& options, const Traffic& sample) {
  const load::DatasetOptions& d = options.dataset;
  return {{"dataset", d.name},
          {"path", d.path},
          {"num_prompts", d.num_prompts},
          {"seed", d.seed},
          {"input_len", d.input_len},
          {"output_len", d.output_len},
          {"output_len_given", d.output_len_given},
          {"input_len_std", d.input_len_std},
          {"output_len_std", d.output_len_std},
          {"range_ratio", d.range_ratio},
          {"prefix_len", d.prefix_len},
          {"num_prefixes", d.num_prefixes},
          {"turns", d.turns},
          {"request_rate", options.request_rate},
          {"burstiness", options.burstiness},
          {"max_concurrency", options.max_concurrency},
          {"temperature", double{options.temperature}},
          {"ignore_eos", options.ignore_eos},
          {"first_requests", DigestOf(sample)}};
}

json::object Header(const Session& session, const Traffic& sample) {
  const weight_cache::SourceIdentity model = weight_cache::IdentityOf(session.file);
  const EngineConfig& e = session.options.engine;
  json::array slo;
  for (const load::Slo& term : session.options.slo) slo.push_back(json::value(load::Name(term)));
  return {
      {"vivace", VIVACE_VERSION},
      {"model",
       {{"size", model.size},
        {"header", model.header_digest},
        {"sample", model.sample_digest},
        {"quantization", e.quantization ? static_cast<int>(*e.quantization) : -1}}},
      {"machine",
       {{"cpu", bench::CpuName()},
        {"cpus", UsableCpus()},
        {"isa", Name(e.isa.value_or(kernels::FastestIsa()))}}},
      {"engine flags",
       {{"max_model_len", e.max_model_len},
        {"kv_cache_memory_bytes", e.kv_cache_memory_bytes},
        {"num_kv_blocks", e.num_kv_blocks},
        {"block_size", e.block_size},
        {"prefix_caching", e.enable_prefix_caching}}},
      {"traffic", TrafficHeader(session.options, sample)},
      {"objective", slo},
  };
}

const json::value& MemberOf(const json::object& object, std::string_view name) {
  static const json::value kNull;
  const json::value* value = object.if_contains(name);
  return value == nullptr ? kNull : *value;
}

tl::unexpected<Error> Wrong(std::string_view what) {
  return Fail(ErrorCode::kCorruptData, "bad_member", std::string(what),
              "\"{}\" is missing or wrong", what);
}

Result<RunPlan> PlanFromJson(const json::object& entry) {
  const json::value& requests = MemberOf(entry, "requests");
  const json::value& digest = MemberOf(entry, "digest");
  boost::system::error_code error;
  const auto available = MemberOf(entry, "available_bytes").to_number<uint64_t>(error);
  if (error) return Wrong("available_bytes");
  if (!digest.is_string()) return Wrong("digest");
  if (!requests.is_int64() || requests.get_int64() < 1 ||
      requests.get_int64() > kMostPlannedRequests) {
    return Wrong("requests");
  }
  return RunPlan{.requests = static_cast<size_t>(requests.get_int64()),
                 .digest = std::string(digest.get_string()),
                 .available = available};
}

}  // namespace

Result<RunJournal> RunJournal::Open(Session* session, const Traffic& sample) {
  const TuneOptions& options = session->options;
  std::error_code error;
  fs::create_directories(options.out, error);
  if (!fs::is_directory(options.out, error)) {
    return Fail(ErrorCode::kIo, "io_error", "out",
                "--out is '{}', which is no folder and cannot be made", options.out);
  }
  VIVACE_ASSIGN(Journal journal, Journal::Open(PathOf(options), Header(*session, sample)));
  if (journal.dropped_line())
    session->notes.emplace_back("the journal's last line had been cut off and was dropped");
  RunJournal run(std::move(journal), &session->budget);
  VIVACE_RETURN_IF_ERROR(run.Read(session));
  return run;
}

Status RunJournal::Read(Session* session) {
  double spent_s = 0;
  for (const json::object& entry : journal_.entries()) {
    if (const Status read = ReadEntry(entry); !read) {
      return Fail(ErrorCode::kCorruptData, "corrupt_journal", "out",
                  "{}: an entry is damaged ({}); give another --out", PathOf(session->options),
                  read.error().message);
    }
    const json::value& spent = MemberOf(entry, "spent_s");
    if (spent.is_double()) spent_s = std::max(spent_s, spent.get_double());
  }
  session->budget.SetSpentBefore(spent_s);
  return {};
}

Status RunJournal::ReadEntry(const json::object& entry) {
  const json::value& kind = MemberOf(entry, "kind");
  if (!kind.is_string()) return Wrong("kind");
  if (!MemberOf(entry, "spent_s").is_double()) return Wrong("spent_s");
  if (kind.get_string() == "trial") {
    VIVACE_ASSIGN(Trial trial, TrialFromJson(entry));
    trials_.push_back(std::move(trial));
  } else if (kind.get_string() == "calibration") {
    VIVACE_ASSIGN(const Setting of, SettingFromJson(MemberOf(entry, "setting")));
    VIVACE_ASSIGN(calibrations_[KeyOf(of)], SamplesFromJson(MemberOf(entry, "steps")));
  } else if (kind.get_string() == "plan") {
    VIVACE_ASSIGN(plan_, PlanFromJson(entry));
  }
  return {};
}

Status RunJournal::Append(std::string_view kind, json::object entry) {
  entry["spent_s"] = budget_->Spent();
  return journal_.Append(kind, std::move(entry));
}

Status RunJournal::Add(const RunPlan& plan) {
  return Append("plan", {{"requests", static_cast<int64_t>(plan.requests)},
                         {"digest", plan.digest},
                         {"available_bytes", static_cast<uint64_t>(plan.available)}});
}

Status RunJournal::AddCalibration(const Setting& setting,
                                  const std::vector<bench::StepSample>& steps) {
  return Append("calibration", {{"setting", ToJson(setting)}, {"steps", ToJson(steps)}});
}

Status RunJournal::Add(const Trial& trial) { return Append("trial", ToJson(trial)); }

}  // namespace vivace::tune
