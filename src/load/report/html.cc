#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <iterator>
#include <set>

#include "load/report/fields.h"
#include "load/report/html_css.h"
#include "load/report/report.h"
#include "load/report/report_plots.h"
#include "load/report/servers.h"
#include "load/report/svg_plot.h"
#include "load/report/text.h"
#include "load/report/waterfall.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

constexpr size_t kWaterfallRows = 150;

std::string E(std::string_view text) { return EscapeMarkup(text); }

std::string Date(int64_t unix_ms) {
  return unix_ms <= 0 ? std::string()
                      : fmt::format("{:%Y-%m-%d %H:%M} UTC",
                                    fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

class Page {
 public:
  explicit Page(const std::vector<RunResult>& runs)
      : runs_(runs), servers_(ByServer(runs)), labels_(ShortLabels(runs)) {}

  std::string Make() {
    Head();
    Top();
    Verdict();
    Nav();
    Summary();
    Load();
    Distributions();
    Details();
    Environment();
    DefinitionList();
    Put("<footer>Made by vivace {}. This file loads nothing and runs no script; the numbers are in "
        "the JSON report of the same run.</footer>\n</div></body></html>\n",
        VIVACE_VERSION);
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  // The model; where servers stand side by side, these.
  std::string Subject() const {
    std::string names;
    for (const ServerRuns& server : servers_) {
      if (!server.name.empty()) names += (names.empty() ? "" : " and ") + server.name;
    }
    if (!names.empty()) return Printable(names, 120);
    return runs_.empty() || runs_[0].model.empty() ? "Benchmark" : Printable(runs_[0].model, 120);
  }

  void Head() {
    // The policy holds even if an escape were missing: nothing is loaded, no script runs.
    Put("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{} - vivace bench</title>\n<style>\n{}{}</style></head>\n<body><div "
        "class=\"wrap\">\n",
        E(Subject()), PlotCss(), HtmlCss());
  }

  void Top() {
    Put("<header class=\"top\"><div><h1>{}</h1>\n", E(Subject()));
    if (!runs_.empty()) {
      const RunResult& run = runs_[0];
      for (const ServerRuns& server : servers_) {
        const RunResult& first = runs_[server.runs[0]];
        Put("<p class=\"sub\">{}{}</p>\n",
            server.name.empty() ? "" : E(Printable(server.name + ": " + first.model + " at ", 160)),
            E(Printable(first.base_url + first.endpoint)));
      }
      Put("<p class=\"sub\">{}{}{}{}</p>\n", E(Printable(run.workload)),
          run.workload.empty() ? "" : " · ",
          runs_.size() == 1 ? fmt::format("{} requests", run.figures.requests)
                            : fmt::format("{} runs", runs_.size()),
          run.started_unix_ms > 0 ? " · " + Date(run.started_unix_ms) : "");
    }
    Put("</div>\n<fieldset class=\"theme\"><legend>Colours</legend>"
        "<input type=\"radio\" name=\"theme\" id=\"auto\" checked><label for=\"auto\">Auto</label>"
        "<input type=\"radio\" name=\"theme\" id=\"light\"><label for=\"light\">Light</label>"
        "<input type=\"radio\" name=\"theme\" id=\"dark\"><label for=\"dark\">Dark</label>"
        "</fieldset></header>\n");
  }

  // Sentences of all runs, those that several share said once; what all say needs no names.
  std::string Sentences(std::vector<std::string> (*of)(const RunResult&)) const {
    struct Said {
      std::string sentence, who;
      size_t runs = 0;
    };
    std::vector<Said> said;
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (const std::string& sentence : of(runs_[i])) {
        auto same = std::ranges::find(said, sentence, &Said::sentence);
        if (same == said.end()) same = said.insert(same, {.sentence = sentence, .who = ""});
        same->who += (same->who.empty() ? "" : ", ") + labels_[i];
        same->runs += 1;
      }
    }
    std::string list;
    for (const Said& s : said) {
      const bool named = s.runs < runs_.size() && !s.who.empty();
      list += fmt::format("<li>{}{}</li>\n", named ? E(s.who) + ": " : "",
                          E(Printable(s.sentence, 500)));
    }
    return list;
  }

  void Verdict() {
    const auto invalid = std::count_if(
        runs_.begin(), runs_.end(), [](const RunResult& r) { return !InvalidBecause(r).empty(); });
    if (invalid > 0) {
      const std::string who = runs_.size() == 1
                                  ? "This run is invalid"
                                  : fmt::format("{} of {} runs are invalid", invalid, runs_.size());
      Put("<div class=\"verdict bad\" role=\"status\"><strong>{}.</strong> Do not use {} figures."
          "<ul>{}</ul></div>\n",
          who, runs_.size() == 1 ? "its" : "their", Sentences(InvalidBecause));
    }
    const std::string warnings = Sentences(Warnings);
    if (!warnings.empty()) {
      Put("<div class=\"verdict warn\"><strong>Worth knowing</strong><ul>{}</ul></div>\n",
          warnings);
    }
    if (invalid == 0 && warnings.empty()) {
      Put("<div class=\"verdict\" role=\"status\"><strong>Valid.</strong> At most 1 % of the "
          "requests "
          "failed, and the client kept up.</div>\n");
    }
  }

  void Nav() {
    Put("<nav aria-label=\"Sections\"><a href=\"#summary\">Summary</a>");
    if (runs_.size() > 1) Put("<a href=\"#load\">Under load</a>");
    Put("<a href=\"#distributions\">Distributions</a><a href=\"#runs\">{}</a>"
        "<a href=\"#environment\">Environment</a><a href=\"#definitions\">Definitions</a></nav>\n",
        runs_.size() == 1 ? "Requests" : "Runs");
  }

  void Tile(double value, std::string_view unit, std::string_view name) {
    if (!std::isfinite(value)) return;
    Put("<div class=\"tile\"><b>{}</b><span>{}<br>{}</span></div>\n", Figure(value), unit, name);
  }

  void Tiles(const RunResult& run) {
    const Figures& f = run.figures;
    Put("<div class=\"tiles\">\n");
    Tile(f.output_throughput, "tokens/s", "output throughput");
    Tile(f.request_throughput, "requests/s", "request throughput");
    if (f.goodput >= 0) Tile(f.goodput, "requests/s", "goodput");
    Tile(OfN(f.ttft_ms, f.ttft_ms.p50), "ms", "TTFT, median");
    Tile(OfN(f.ttft_ms, f.ttft_ms.p99), "ms", "TTFT, p99");
    Tile(OfN(f.tpot_ms, f.tpot_ms.p50), "ms", "TPOT, median");
    Tile(OfN(f.itl_ms, f.itl_ms.p99), "ms", "ITL, p99");
    Tile(OfN(f.e2el_ms, f.e2el_ms.p50), "ms", "E2EL, median");
    Put("</div>\n");
  }

  void Summary() {
    Put("<h2 id=\"summary\">Summary</h2>\n");
    if (runs_.size() == 1) {
      Tiles(runs_[0]);
      return;
    }
    const bool goodput = std::any_of(runs_.begin(), runs_.end(),
                                     [](const RunResult& r) { return r.figures.goodput >= 0; });
    Put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Summary of "
        "runs\"><table>"
        "<thead><tr class=\"group\"><th></th><th colspan=\"2\" class=\"edge\">requests</th>"
        "<th colspan=\"{}\" class=\"edge\">a second</th>"
        "<th colspan=\"2\" class=\"edge\">TTFT, ms</th><th colspan=\"2\" class=\"edge\">TPOT, "
        "ms</th><th class=\"edge\">ITL, ms</th><th colspan=\"2\" class=\"edge\">E2EL, "
        "ms</th></tr>\n"
        "<tr><th>run</th><th class=\"edge\">ok</th><th>failed</th><th class=\"edge\">requests</th>"
        "<th>output tokens</th><th>tokens/user</th>{}"
        "<th class=\"edge\">p50</th><th>p99</th><th class=\"edge\">p50</th><th>p99</th>"
        "<th class=\"edge\">p99</th><th "
        "class=\"edge\">p50</th><th>p99</th></tr></thead>\n<tbody>\n",
        goodput ? 4 : 3, goodput ? "<th>goodput</th>" : "");
    for (size_t i = 0; i < runs_.size(); ++i) SummaryRow(i, goodput);
    Put("</tbody></table></div>\n");
  }

  void SummaryRow(size_t i, bool goodput) {
    const RunResult& run = runs_[i];
    const Figures& f = run.figures;
    const bool invalid = !InvalidBecause(run).empty();
    Put("<tr><th scope=\"row\"><a href=\"#run{}\">{}</a>{}</th><td class=\"edge\">{}</td>"
        "<td{}>{}</td>",
        i, E(labels_[i]), invalid ? " <span class=\"flag\">invalid</span>" : "", f.completed,
        f.failed > 0 ? " class=\"flag\"" : "", f.failed);
    Put("<td class=\"edge\">{}</td><td>{}</td><td>{}</td>", Figure(f.request_throughput),
        Figure(f.output_throughput), Figure(OfN(f.tpot_ms, 1e3 / f.tpot_ms.mean)));
    if (goodput) Put("<td>{}</td>", Figure(f.goodput >= 0 ? f.goodput : NAN));
    const std::pair<double, bool> cells[] = {
        {OfN(f.ttft_ms, f.ttft_ms.p50), true},  {OfN(f.ttft_ms, f.ttft_ms.p99), false},
        {OfN(f.tpot_ms, f.tpot_ms.p50), true},  {OfN(f.tpot_ms, f.tpot_ms.p99), false},
        {OfN(f.itl_ms, f.itl_ms.p99), true},    {OfN(f.e2el_ms, f.e2el_ms.p50), true},
        {OfN(f.e2el_ms, f.e2el_ms.p99), false},
    };
    for (const auto& [value, edge] : cells) {
      Put("<td{}>{}</td>", edge ? " class=\"edge\"" : "", Figure(value));
    }
    Put("</tr>\n");
  }

  void Plots(const std::vector<std::string>& plots) {
    Put("<div class=\"plots\">\n");
    for (const std::string& plot : plots) {
      if (!plot.empty()) Put("<figure>{}</figure>\n", plot);
    }
    Put("</div>\n");
  }

  void Load() {
    if (runs_.size() < 2) return;
    Put("<h2 id=\"load\">Under load</h2>\n");
    Plots({TtftAgainstThroughput(runs_), TpotAgainstThroughput(runs_), ParetoPlot(runs_),
           GoodputPlot(runs_)});
  }

  void Distributions() {
    Put("<h2 id=\"distributions\">Distributions</h2>\n");
    const auto plots = DistributionPlots(runs_);
    if (plots.empty()) {
      Put("<p class=\"muted\">Nothing completed, or the report was made without its records "
          "(--save-detailed keeps them).</p>\n");
      return;
    }
    if (runs_.size() > kMostCurves) {
      Put("<p class=\"muted\">{} of the {} runs, evenly chosen.</p>\n", kMostCurves, runs_.size());
    }
    Plots(plots);
  }

  void LatencyTable(const Figures& f) {
    const std::pair<std::string, const Distribution*> rows[] = {
        {"TTFT", &f.ttft_ms},
        {"TPOT", &f.tpot_ms},
        {f.itl_per_token ? "ITL, per token" : "ITL, per chunk", &f.itl_ms},
        {"E2EL", &f.e2el_ms},
        {"queueing, client", &f.queue_ms},
        {"queueing, server", &f.server_queue_ms},
    };
    Put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Latencies\"><table>"
        "<thead><tr><th>ms</th><th>mean</th><th>std</th><th>min</th><th>p50</th><th>p90</th>"
        "<th>p95</th><th>p99</th><th>max</th><th>n</th></tr></thead><tbody>\n");
    for (const auto& [name, d] : rows) {
      if (d->n == 0) continue;
      Put("<tr><th scope=\"row\">{}</th>", name);
      for (double value : {d->mean, d->stddev, d->min, d->p50, d->p90, d->p95, d->p99, d->max}) {
        Put("<td>{}</td>", Figure(value));
      }
      Put("<td>{}</td></tr>\n", d->n);
    }
    Put("</tbody></table></div>\n");
  }

  void Failures(const Figures& f) {
    if (f.failures.empty()) return;
    Put("<h3>Failures</h3><div class=\"scroll\"><table class=\"text counts\"><tbody>\n");
    for (const auto& [reason, count] : f.failures) {
      Put("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", count, E(Printable(reason, 500)));
    }
    Put("</tbody></table></div>\n");
  }

  void Details() {
    Put("<h2 id=\"runs\">{}</h2>\n", runs_.size() == 1 ? "Requests" : "Runs");
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_.size() == 1) {
        RunDetails(runs_[i]);
        continue;
      }
      const Figures& f = runs_[i].figures;
      Put("<details id=\"run{}\"{}><summary>{} <span class=\"muted\">{} requests in {} s, peak {} "
          "under way</span></summary>\n",
          i, i == 0 ? " open" : "", E(labels_[i]), f.requests, Figure(f.duration_s),
          f.peak_concurrency);
      RunDetails(runs_[i]);
      Put("</details>\n");
    }
  }

  void RunDetails(const RunResult& run) {
    LatencyTable(run.figures);
    Failures(run.figures);
    const std::string waterfall = SvgWaterfall(run, kWaterfallRows);
    if (!waterfall.empty()) {
      Put("<figure class=\"wide\" tabindex=\"0\">{}</figure>\n", waterfall);
    }
    const auto server = ServerPlots(run);
    if (!server.empty()) {
      Put("<h3>What the server says of itself</h3>\n");
      Plots(server);
    }
  }

  using RunText = std::function<std::string(const RunResult&)>;

  // What differs between a server's runs, each once.
  std::string Values(const ServerRuns& server, const RunText& value) const {
    std::vector<std::string> values;
    for (const size_t i : server.runs) {
      std::string text = value(runs_[i]);
      if (std::ranges::count(values, text) == 0) values.push_back(std::move(text));
    }
    return fmt::format("{}", fmt::join(values, ", "));
  }

  // What is the same for all servers is said once.
  void Environment() {
    Put("<h2 id=\"environment\">Environment and settings</h2>\n<div class=\"scroll\"><table "
        "class=\"text\">");
    if (servers_.size() > 1) {
      Put("<thead><tr><th></th>");
      for (const ServerRuns& server : servers_) Put("<th>{}</th>", E(Printable(server.name)));
      Put("</tr></thead>");
    }
    Put("<tbody>\n");
    const auto row = [&](std::string_view name, const RunText& value) {
      std::vector<std::string> cells;
      for (const ServerRuns& server : servers_) cells.push_back(Values(server, value));
      const bool same = std::ranges::count(cells, cells[0]) == std::ssize(cells);
      if (same && cells[0].empty()) return;
      Put("<tr><th scope=\"row\">{}</th>", E(name));
      if (same) cells.resize(1);
      for (const std::string& cell : cells) {
        Put("<td{}>{}</td>",
            same && servers_.size() > 1 ? fmt::format(" colspan=\"{}\"", servers_.size()) : "",
            E(Printable(cell, 2'000)));
      }
      Put("</tr>\n");
    };
    if (runs_.empty()) return Put("</tbody></table></div>\n");
    row("server", [](const RunResult& r) { return r.base_url + r.endpoint; });
    row("model", [](const RunResult& r) { return r.model; });
    row("workload", [](const RunResult& r) { return r.workload; });
    row("seed", [](const RunResult& r) { return fmt::to_string(r.seed); });
    row("maximum concurrency", [](const RunResult& r) {
      return r.max_concurrency > 0 ? fmt::to_string(r.max_concurrency) : "unlimited";
    });
    row("request rate", [](const RunResult& r) {
      const std::string rate = RateText(r);
      return !rate.empty()           ? rate
             : r.max_concurrency > 0 ? "as fast as the places allow"
                                     : "all at once";
    });
    row("promise", [](const RunResult& r) {
      std::string text;
      for (const Promise& p : r.promises) {
        text += fmt::format("{}{} at most {} ms", text.empty() ? "" : ", ", Name(p.what),
                            Figure(p.most_ms));
      }
      return text;
    });
    row("client: share of a core",
        [](const RunResult& r) { return fmt::format("{:.1f} %", r.client.cpu_share * 100); });
    row("client: timers late, p99",
        [](const RunResult& r) { return fmt::format("{:.2f} ms", r.client.loop_lag_p99_ms); });
    std::set<std::string> names;
    for (const RunResult& run : runs_) {
      for (const auto& [name, value] : run.environment) names.insert(name);
    }
    for (const std::string& name : names) {
      row(Printable(name), [&](const RunResult& r) {
        const auto found = r.environment.find(name);
        return found == r.environment.end() ? std::string() : found->second;
      });
    }
    Put("</tbody></table></div>\n");
  }

  void DefinitionList() {
    Put("<h2 id=\"definitions\">Definitions</h2>\n<dl>\n");
    for (const Definition& d : Definitions()) {
      Put("<dt>{}</dt><dd>{}</dd>\n", E(d.name), E(d.text));
    }
    Put("</dl>\n");
  }

  const std::vector<RunResult>& runs_;
  const std::vector<ServerRuns> servers_;
  const std::vector<std::string> labels_;  // of the runs
  std::string out_;
};

}  // namespace

std::string ReportHtml(const std::vector<RunResult>& runs) { return Page(runs).Make(); }

}  // namespace vivace::load
