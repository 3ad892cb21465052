// report.html: one file, no script, nothing from elsewhere.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "load/report/svg_plot.h"
#include "tune/report.h"

namespace vivace::tune {
namespace {

using load::EscapeMarkup;
using load::Plot;
using load::PlotPoint;
using load::PlotSeries;

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1180px; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15em .6em; text-align: right; border-bottom: 1px solid #8884; }
th { font-weight: 600; } .plots { display: flex; flex-wrap: wrap; gap: 1em; }
.best { font-weight: 700; } .note { opacity: .75; } code { font-size: .92em; }
.plots > * { flex: 1 1 24em; max-width: 37em; } svg { max-width: 44em; } .wide { overflow-x: auto; }
)";

std::string PointTitle(const Candidate& c) {
  const load::Figures& f = c.measured.figures;
  return fmt::format("{}: {:.1f} tok/s, p99 TTFT {:.0f} ms, p99 ITL {:.1f} ms", Name(c.setting),
                     f.output_throughput, f.ttft_ms.p99, f.itl_ms.p99);
}

// Throughput against a latency: all that was measured, the front, the defaults and the winner.
std::string FrontPlot(const TuneResult& result, const std::string& label,
                      double (*latency)(const load::Figures&)) {
  PlotSeries measured{.kind = PlotSeries::Kind::kPoints, .name = "measured", .points = {}};
  PlotSeries front{.kind = PlotSeries::Kind::kPoints, .name = "Pareto front", .points = {}};
  PlotSeries defaults{.kind = PlotSeries::Kind::kPoints, .name = "defaults", .points = {}};
  PlotSeries winner{.kind = PlotSeries::Kind::kPoints, .name = "winner", .points = {}};
  for (size_t i = 0; i < result.candidates.size(); ++i) {
    const Candidate& c = result.candidates[i];
    if (!c.tried()) continue;
    PlotPoint point{.x = latency(c.measured.figures),
                    .y = c.measured.figures.output_throughput,
                    .label = "",
                    .title = PointTitle(c)};
    if (result.any && i == result.winner) {
      point.label = fmt::format("{} seqs, {} tokens", c.setting.max_num_seqs,
                                c.setting.max_num_batched_tokens);
      winner.points.push_back(point);
    } else if (i == result.defaults) {
      defaults.points.push_back(point);
    } else {
      (c.front ? front : measured).points.push_back(point);
    }
  }
  Plot plot{.title = "Throughput against " + label,
            .x_label = label + ", ms",
            .y_label = "output tokens/s",
            .series = {}};
  for (PlotSeries* series : {&measured, &front, &defaults, &winner})
    if (!series->points.empty()) plot.series.push_back(std::move(*series));
  return load::SvgPlot(plot);
}

std::string ForecastPlot(const TuneResult& result) {
  PlotSeries points{.kind = PlotSeries::Kind::kPoints, .name = "settings", .points = {}};
  double most = 0;
  for (const Candidate& c : result.candidates) {
    if (!c.tried() || c.measured.partial) continue;
    const double x = c.forecast.figures.output_throughput;
    const double y = c.measured.figures.output_throughput;
    points.points.push_back({.x = x, .y = y, .label = "", .title = PointTitle(c)});
    most = std::max({most, x, y});
  }
  PlotSeries equal{.kind = PlotSeries::Kind::kLine,
                   .name = "as forecast",
                   .points = {{.x = 0, .y = 0, .label = "", .title = ""},
                              {.x = most, .y = most, .label = "", .title = ""}}};
  return load::SvgPlot({.title = "Forecast and measured throughput",
                        .x_label = "forecast output tokens/s",
                        .y_label = "measured output tokens/s",
                        .series = {std::move(points), std::move(equal)}});
}

// max_num_seqs x max_num_batched_tokens where the winner is in all else; what was not measured is
// forecast, and in brackets.
std::string ScoreMap(const TuneResult& result) {
  const Setting& winner = result.candidates[result.winner].setting;
  std::set<int32_t> seqs, tokens;
  const auto in_slice = [&](const Setting& s) {
    return s.threads == winner.threads && s.kv_cache_dtype == winner.kv_cache_dtype &&
           s.max_itl_ms == winner.max_itl_ms;
  };
  for (const auto& [setting, index] : result.standing) {
    if (!in_slice(setting)) continue;
    seqs.insert(setting.max_num_seqs);
    tokens.insert(setting.max_num_batched_tokens);
  }
  load::HeatMap map{.title = fmt::format("Score, {}", result.unit),
                    .x_label = "max_num_seqs",
                    .y_label = "max_num_batched_tokens",
                    .value_label = std::string(result.unit),
                    .columns = {},
                    .rows = {},
                    .values = {},
                    .texts = {},
                    .marked = {}};
  for (const int32_t s : seqs) map.columns.push_back(fmt::to_string(s));
  for (const int32_t t : tokens) map.rows.push_back(fmt::to_string(t));
  map.values.assign(map.columns.size() * map.rows.size(), std::numeric_limits<double>::quiet_NaN());
  map.texts.resize(map.values.size());
  for (const auto& [setting, index] : result.standing) {
    if (!in_slice(setting)) continue;
    const auto column =
        static_cast<size_t>(std::distance(seqs.begin(), seqs.find(setting.max_num_seqs)));
    const auto row = static_cast<size_t>(
        std::distance(tokens.begin(), tokens.find(setting.max_num_batched_tokens)));
    const Candidate& c = result.candidates[index];
    const size_t cell = row * map.columns.size() + column;
    map.values[cell] = c.tried() ? c.score.value : c.forecast_score.value;
    const bool kept = c.tried() ? c.score.kept() : c.forecast_score.kept();
    map.texts[cell] =
        fmt::format("{}{}{}{}", c.tried() ? "" : "(", load::ShortNumber(map.values[cell]),
                    kept ? "" : "!", c.tried() ? "" : ")");
    if (setting == winner) map.marked.emplace_back(row, column);
  }
  return load::SvgHeatMap(map);
}

std::string Table(const TuneResult& result) {
  std::string out =
      "<div class=\"wide\"><table><tr><th>seqs<th>tokens<th>itl<th>cache<th>threads<th>score"
      "<th>output tok/s<th>p50 TTFT<th>p99 TTFT<th>p50 ITL<th>p99 ITL<th>batch<th>most<th>queue"
      "<th>preempted<th>step ms<th>tokens/step<th>kernels<th>trials<th>forecast tok/s<th></tr>\n";
  for (const size_t i : Ranked(result.candidates)) {
    const Candidate& c = result.candidates[i];
    const load::Figures& f = c.measured.figures;
    const bench::EngineUse& use = c.measured.use;
    std::string remark = c.front ? "front" : "";
    if (i == result.defaults)
      remark += c.outside ? " defaults, not among the choices" : " defaults";
    if (result.any && i == result.winner) remark += " winner";
    if (c.measured.partial) remark += " given up: too slow";
    if (!c.score.broken.empty()) remark += fmt::format(" {}", fmt::join(c.score.broken, ", "));
    out += fmt::format(
        "<tr{}><td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.4g}<td>{:.1f}<td>{:.0f}<td>{:.0f}<td>{:.1f}<td>"
        "{:.1f}<td>{:.1f}<td>{}<td>{:.1f}<td>{}<td>{:.2f}<td>{:.1f}<td>{:.1f} "
        "%<td>{}<td>{:.1f}<td>{}"
        "</tr>\n",
        result.any && i == result.winner ? " class=\"best\"" : "", c.setting.max_num_seqs,
        c.setting.max_num_batched_tokens, ItlName(c.setting.max_itl_ms), KvName(c.setting),
        c.setting.threads, c.score.value, f.output_throughput, f.ttft_ms.p50, f.ttft_ms.p99,
        f.itl_ms.p50, f.itl_ms.p99, use.mean_batch, use.peak_batch, use.mean_waiting,
        use.preemptions, use.mean_step_ms, use.mean_step_tokens, use.kernel_share * 100,
        c.trials.size(), c.forecast.figures.output_throughput, EscapeMarkup(remark));
  }
  return out + "</table></div>\n";
}

std::string Head(const TuneResult& result, const ReportOptions& options) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>vivace tune: {}</title><style>{}{}</style></head>"
      "<body>\n<h1>Which settings serve this traffic best</h1>\n",
      EscapeMarkup(options.model), kStyle, load::PlotCss());
  if (result.interrupted)
    out +=
        "<p><b>Interrupted: this is what had been measured by then.</b> The same command goes on "
        "from here.</p>\n";
  out += fmt::format(
      "<p>{}, on {}.<br>Traffic: {}, {} requests a trial. Wanted: {}.<br>{} of {} settings "
      "measured in "
      "{} trials and {:.0f} s; ended because {}.{}</p>\n",
      EscapeMarkup(options.model), EscapeMarkup(result.machine), EscapeMarkup(result.workload),
      result.requests, EscapeMarkup(result.objective), result.measured(), result.settings,
      result.trials, result.spent_s, EscapeMarkup(result.why_done),
      result.left_out > 0 ? fmt::format(" {} settings do not fit this machine.", result.left_out)
                          : "");
  return out;
}

std::string ForecastErrors(const TuneResult& result) {
  return fmt::format(
             "<h2>How good the forecasts were</h2>\n<p>Median error over {} settings: throughput "
             "{:.1f} % (worst {:.1f} %), p99 TTFT {:.0f} %, p99 ITL {:.0f} %. Steps: the cost "
             "model's typical error is {:.1f} %. One trial varies by {:.1f} %.</p>\n",
             result.error.n, result.error.throughput * 100, result.error.worst_throughput * 100,
             result.error.p99_ttft * 100, result.error.p99_itl * 100, result.step_error * 100,
             result.noise * 100) +
         ForecastPlot(result);
}

}  // namespace

std::string ReportHtml(const TuneResult& result, const ReportOptions& options) {
  std::string out = Head(result, options);
  if (result.any) {
    out += fmt::format("<h2>The winner: {}</h2>\n<ul>\n",
                       EscapeMarkup(Name(result.candidates[result.winner].setting)));
    for (const std::string& reason : Reasons(result))
      out += fmt::format("<li>{}</li>\n", EscapeMarkup(reason));
    out +=
        "</ul>\n<p><code>vivace serve --config vivace.json</code> (beside this file) serves with "
        "it.</p>\n<div class=\"plots\">\n";
    out += FrontPlot(result, "p99 ITL", [](const load::Figures& f) { return f.itl_ms.p99; });
    out += FrontPlot(result, "p99 TTFT", [](const load::Figures& f) { return f.ttft_ms.p99; });
    out +=
        "</div>\n<h2>Sequences and tokens of a step</h2>\n<p class=\"note\">With everything else "
        "as the winner has it. In brackets: forecast, not measured. With \"!\": breaks the "
        "promise.</p>\n";
    out += ScoreMap(result);
    if (result.error.n > 0) out += ForecastErrors(result);
    out += "<h2>All that was measured</h2>\n" + Table(result);
  } else {
    out += "<p>No setting was measured to its end.</p>\n";
  }
  if (!result.notes.empty()) {
    out += "<h2>Notes</h2>\n<ul>\n";
    for (const std::string& note : result.notes)
      out += fmt::format("<li>{}</li>\n", EscapeMarkup(note));
    out += "</ul>\n";
  }
  out += fmt::format("<p class=\"note\">Made by <code>{}</code>, Vivace {}.</p>\n</body></html>\n",
                     EscapeMarkup(options.command), VIVACE_VERSION);
  return out;
}

}  // namespace vivace::tune
