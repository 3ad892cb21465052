#include "tune/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "base/output_file.h"

namespace vivace::tune {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr size_t kShown = 12;  // rows of the terminal's table

std::string Percent(double share) { return fmt::format("{:+.1f} %", share * 100); }

// One JSON value on lines of its own: members of the outermost objects are to be read by people.
void Pretty(const json::value& value, int depth, std::string* out) {
  const std::string indent(static_cast<size_t>(depth) * 2 + 2, ' ');
  if (const json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    *out += "{\n";
    bool first = true;
    for (const auto& [name, member] : *object) {
      *out += first ? "" : ",\n";
      first = false;
      *out += indent + json::serialize(json::value(name)) + ": ";
      Pretty(member, depth + 1, out);
    }
    *out += "\n" + indent.substr(2) + "}";
  } else if (value.is_double()) {
    *out += fmt::format("{}", value.get_double());
  } else {
    *out += json::serialize(value);
  }
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

}  // namespace

std::string TerminalTable(const TuneResult& result) {
  const std::vector<size_t> ranked = Ranked(result.candidates);
  if (ranked.empty()) return "nothing was measured\n";
  std::string out = fmt::format(
      "{:>5} {:>7} {:>7} {:>6} {:>8} | {:>8} {:>9} {:>8} {:>6} {:>6} {:>7} {:>8} | {:>6} {:>9}\n",
      "seqs", "tokens", "itl", "cache", "threads", "out t/s", "p99 TTFT", "p99 ITL", "batch",
      "queue", "set back", "step ms", "trials", "forecast");
  const auto row = [&](size_t i) {
    const Candidate& c = result.candidates[i];
    const load::Figures& f = c.measured.figures;
    out += fmt::format(
        "{:>5} {:>7} {:>7} {:>6} {:>8} | {:>8.1f} {:>9.1f} {:>8.1f} {:>6.1f} {:>6.1f} {:>7} "
        "{:>8.2f} | {:>6} {:>9.1f}{}{}{}\n",
        c.setting.max_num_seqs, c.setting.max_num_batched_tokens, ItlName(c.setting.max_itl_ms),
        KvName(c.setting), c.setting.threads, f.output_throughput, f.ttft_ms.p99, f.itl_ms.p99,
        c.measured.use.mean_batch, c.measured.use.mean_waiting, c.measured.use.preemptions,
        c.measured.use.mean_step_ms, c.trials.size(), c.forecast.figures.output_throughput,
        i == result.winner && result.any ? "  <- best" : "",
        i != result.defaults ? ""
        : c.outside          ? "  (defaults, not among the choices)"
                             : "  (defaults)",
        c.score.broken.empty() ? "" : fmt::format("  {}", fmt::join(c.score.broken, ", ")));
  };
  for (size_t n = 0; n < std::min(kShown, ranked.size()); ++n) row(ranked[n]);
  const auto defaults =
      std::ranges::find(ranked, result.defaults.value_or(result.candidates.size()));
  if (defaults != ranked.end() && static_cast<size_t>(defaults - ranked.begin()) >= kShown)
    row(*defaults);
  return out;
}

namespace {

// The winner beside the defaults.
void CompareWithDefaults(const TuneResult& result, std::vector<std::string>* reasons) {
  const Candidate& w = result.candidates[result.winner];
  const Candidate& d = result.candidates[*result.defaults];
  if (!d.tried()) return;
  const bench::EngineUse &use = w.measured.use, &before = d.measured.use;
  reasons->push_back(fmt::format(
      "Against the defaults ({}): {} of the score; batch {:.1f} instead of {:.1f}, queue {:.1f} "
      "instead of "
      "{:.1f}, preemptions {} instead of {}, steps {:.2f} ms instead of {:.2f}, p99 TTFT {:.0f} ms "
      "instead of {:.0f}, p99 ITL {:.1f} ms instead of {:.1f}.",
      Name(d.setting), Percent(result.gain()), use.mean_batch, before.mean_batch, use.mean_waiting,
      before.mean_waiting, use.preemptions, before.preemptions, use.mean_step_ms,
      before.mean_step_ms, w.measured.figures.ttft_ms.p99, d.measured.figures.ttft_ms.p99,
      w.measured.figures.itl_ms.p99, d.measured.figures.itl_ms.p99));
  if (w.score.kept() && !d.score.kept()) {
    reasons->push_back(
        fmt::format("The defaults break the promise: {}.", fmt::join(d.score.broken, ", ")));
  } else if (d.outside && Better(d.score, w.score)) {
    reasons->emplace_back("The defaults are better, but your flags leave them out.");
  } else if (result.brief) {
    reasons->emplace_back("That may be chance: trials were short.");
  } else if (!result.beats_defaults) {
    reasons->push_back(fmt::format(
        "That is no clear difference: one trial varies by {:.1f} %. The defaults serve as well.",
        result.noise * 100));
  }
}

}  // namespace

std::vector<std::string> Reasons(const TuneResult& result) {
  std::vector<std::string> reasons;
  if (!result.any) return reasons;
  const Candidate& w = result.candidates[result.winner];
  const bench::EngineUse& use = w.measured.use;
  reasons.push_back(fmt::format(
      "It computes {:.1f} answers at once (of {} allowed, most {}), {:.1f} tokens in a step of "
      "{:.2f} ms; {:.1f} requests wait on average, {} preemption{}.",
      use.mean_batch, w.setting.max_num_seqs, use.peak_batch, use.mean_step_tokens,
      use.mean_step_ms, use.mean_waiting, use.preemptions, use.preemptions == 1 ? "" : "s"));
  if (result.winner == result.defaults) {
    reasons.emplace_back("These are the defaults of `vivace serve`: nothing measured is better.");
  } else if (result.defaults) {
    CompareWithDefaults(result, &reasons);
  }
  std::vector<std::string> others;
  for (const size_t i : result.rivals)
    if (i != result.defaults) others.push_back(Name(result.candidates[i].setting));
  if (!others.empty())
    reasons.push_back(fmt::format("Not clearly worse: {}.", fmt::join(others, "; ")));
  if (w.alike > 1) {
    reasons.push_back(fmt::format(
        "{} settings would behave alike under this traffic: their bounds are never met.", w.alike));
  }
  if (w.measured.partial) {
    reasons.emplace_back(
        "Its trial was given up before its end: the machine was busy, or --budget is too small for "
        "this traffic.");
  }
  if (!w.score.kept()) {  // the winner keeps the promise if any measured setting does
    reasons.push_back(fmt::format(
        "None of the {} settings measured keeps the promise; of this one, which comes nearest, {}.",
        result.measured(), fmt::join(w.score.broken, ", ")));
  }
  return reasons;
}

namespace {

json::array NotesJson(const TuneResult& result) {
  json::array notes;
  for (const std::string& note : result.notes) notes.push_back(json::value(note));
  return notes;
}

json::object CandidateJson(const TuneResult& result, size_t i) {
  const Candidate& c = result.candidates[i];
  json::object object = {
      {"setting", ToJson(c.setting)},
      {"alike", c.alike},
      {"defaults", i == result.defaults},
      {"outside", c.outside},
      {"forecast",
       {{"score", c.forecast_score.value},
        {"output_throughput", c.forecast.figures.output_throughput},
        {"p99_ttft_ms", c.forecast.figures.ttft_ms.p99},
        {"p99_itl_ms", c.forecast.figures.itl_ms.p99}}},
      {"trials", c.trials.size()},
  };
  if (!c.trials.empty() && !c.tried()) object["error"] = c.trials.front().error;
  if (!c.tried()) return object;
  object["score"] = c.score.value;
  object["kept"] = c.score.kept();
  json::array broken;
  for (const std::string& what : c.score.broken) broken.push_back(json::value(what));
  object["broken"] = std::move(broken);
  object["on_front"] = c.front;
  object["winner"] = result.any && i == result.winner;
  object["measured"] = ToJson(c.measured);
  json::array scores;
  for (const Trial& trial : c.trials) scores.push_back(trial.measured.figures.output_throughput);
  object["output_throughputs"] = std::move(scores);
  return object;
}

}  // namespace

std::string ParetoJson(const TuneResult& result, const ReportOptions& options) {
  json::object object = {{"vivace", VIVACE_VERSION},
                         {"command", options.command},
                         {"model", result.model},
                         {"machine", result.machine},
                         {"workload", result.workload},
                         {"requests", result.requests},
                         {"objective", result.objective},
                         {"unit", result.unit},
                         {"settings", result.settings},
                         {"left_out", result.left_out},
                         {"trials", result.trials},
                         {"spent_s", result.spent_s},
                         {"interrupted", result.interrupted},
                         {"why_done", result.why_done},
                         {"notes", NotesJson(result)},
                         {"noise", result.noise},
                         {"step_error", result.step_error},
                         {"forecast_error",
                          {{"n", result.error.n},
                           {"output_throughput", result.error.throughput},
                           {"worst_output_throughput", result.error.worst_throughput},
                           {"p99_ttft", result.error.p99_ttft},
                           {"p99_itl", result.error.p99_itl}}}};
  if (result.any) {
    object["winner"] = ToJson(result.candidates[result.winner].setting);
    object["gain_over_defaults"] = result.gain();
    object["clearly_better_than_defaults"] = result.beats_defaults;
    json::array reasons;
    for (const std::string& reason : Reasons(result)) reasons.push_back(json::value(reason));
    object["reasons"] = std::move(reasons);
  }
  json::array candidates;
  for (const size_t i : Ranked(result.candidates)) candidates.push_back(CandidateJson(result, i));
  for (size_t i = 0; i < result.candidates.size(); ++i)
    if (!result.candidates[i].tried()) candidates.push_back(CandidateJson(result, i));
  object["candidates"] = std::move(candidates);
  return json::serialize(object);
}

std::string ParetoCsv(const TuneResult& result) {
  std::string out =
      "max_num_seqs,max_num_batched_tokens,max_itl_ms,kv_cache_dtype,threads,score,"
      "output_throughput,total_throughput,p50_ttft_ms,p99_ttft_ms,p50_itl_ms,p99_itl_ms,"
      "p99_tpot_ms,mean_e2el_ms,mean_batch,mean_waiting,preemptions,mean_step_ms,trials,"
      "forecast_output_throughput,kept,on_front,winner,defaults\n";
  for (const size_t i : Ranked(result.candidates)) {
    const Candidate& c = result.candidates[i];
    const load::Figures& f = c.measured.figures;
    const bench::EngineUse& use = c.measured.use;
    out += fmt::format(
        "{},{},{},{},{},{:.6g},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:."
        "3f},"
        "{},{:.4f},{},{:.3f},{},{},{},{}\n",
        c.setting.max_num_seqs, c.setting.max_num_batched_tokens, c.setting.max_itl_ms,
        KvName(c.setting), c.setting.threads, c.score.value, f.output_throughput,
        f.total_throughput, f.ttft_ms.p50, f.ttft_ms.p99, f.itl_ms.p50, f.itl_ms.p99, f.tpot_ms.p99,
        f.e2el_ms.mean, use.mean_batch, use.mean_waiting, use.preemptions, use.mean_step_ms,
        c.trials.size(), c.forecast.figures.output_throughput, c.score.kept(), c.front,
        result.any && i == result.winner, i == result.defaults);
  }
  return out;
}

std::string ConfigJson(const TuneResult& result, const ReportOptions& options) {
  const Candidate& winner = result.candidates[result.winner];
  const load::Figures& f = winner.measured.figures;
  json::object config = {{"model", options.model}};
  for (const auto& [name, value] : options.fixed) config[name] = value;
  config["max-num-seqs"] = winner.setting.max_num_seqs;
  config["max-num-batched-tokens"] = winner.setting.max_num_batched_tokens;
  config["max-itl"] = winner.setting.max_itl_ms;
  config["kv-cache-dtype"] = KvName(winner.setting);
  config["threads"] = winner.setting.threads;
  json::object provenance = {{"written_by", fmt::format("vivace tune {}", VIVACE_VERSION)},
                             {"written_at", Now()},
                             {"command", options.command},
                             {"machine", result.machine},
                             {"workload", result.workload},
                             {"requests", result.requests},
                             {"objective", result.objective},
                             {"score", winner.score.value},
                             {"unit", result.unit},
                             {"clearly_better_than_defaults", result.beats_defaults},
                             {"promise_kept", winner.score.kept()},
                             {"output_tokens_per_second", f.output_throughput},
                             {"p99_ttft_ms", f.ttft_ms.p99},
                             {"p99_itl_ms", f.itl_ms.p99},
                             {"trials", result.trials},
                             {"ended_because", result.why_done},
                             {"notes", NotesJson(result)}};
  if (result.defaults && result.candidates[*result.defaults].tried())
    provenance["defaults_score"] = result.candidates[*result.defaults].score.value;
  config["provenance"] = std::move(provenance);
  std::string text;
  Pretty(config, 0, &text);
  return text;
}

namespace {

Status Write(const fs::path& path, std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  return WriteOutput(path.string(), text);
}

}  // namespace

Status WriteReports(const TuneResult& result, const ReportOptions& options) {
  const fs::path out = options.out;
  VIVACE_RETURN_IF_ERROR(Write(out / "pareto.json", ParetoJson(result, options)));
  VIVACE_RETURN_IF_ERROR(Write(out / "pareto.csv", ParetoCsv(result)));
  VIVACE_RETURN_IF_ERROR(Write(out / "report.html", ReportHtml(result, options)));
  if (!result.any) return {};
  return Write(out / "vivace.json", ConfigJson(result, options));
}

}  // namespace vivace::tune
