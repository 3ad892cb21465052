#include "load/report/report_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "load/report/servers.h"
#include "load/report/svg_plot.h"
#include "load/report/text.h"

namespace vivace::load {
namespace {

constexpr size_t kCurvePoints = 300;
constexpr double kWideSpread = 12;  // slowest over the least median: the axis becomes logarithmic
constexpr size_t kPointLabel = 40;  // characters

double PerUser(const RunResult& run) {
  const Distribution& tpot = run.figures.tpot_ms;
  return tpot.n > 0 && tpot.mean > 0 ? 1e3 / tpot.mean : NAN;
}

// Beside points of a series that names the server.
std::string PointLabel(const RunResult& run) { return CutInMiddle(run.label, kPointLabel); }

std::string SeriesName(const ServerRuns& server, std::string_view what) {
  return server.name.empty() ? std::string(what) : fmt::format("{} {}", server.short_name, what);
}

// A latency's p50 and p99 against output throughput, a server's runs in their order: a curve that
// turns back shows a server that is overloaded.
std::string LatencyAgainstThroughput(const std::vector<RunResult>& runs, std::string_view name,
                                     Distribution Figures::*latency) {
  Plot plot;
  plot.title = fmt::format("{} against throughput", name);
  plot.x_label = "output tokens/s of the server";
  double low = 0, high = 0;
  size_t points = 0;
  int color = 0;
  const std::vector<std::string> labels = ShortLabels(runs);
  for (const ServerRuns& server : ByServer(runs)) {
    PlotSeries p99{.name = SeriesName(server, "p99"), .points = {}, .color = color + 1};
    PlotSeries p50{.name = SeriesName(server, "p50"), .points = {}, .color = color};
    color += 2;
    for (const size_t i : server.runs) {
      const RunResult& run = runs[i];
      const Distribution& d = run.figures.*latency;
      if (d.n == 0) continue;
      const double x = run.figures.output_throughput;
      const auto title = [&](const char* stat, double y) {
        return fmt::format("{}: {} {} {} ms at {} tokens/s", labels[i], stat, name, Figure(y),
                           Figure(x));
      };
      p99.points.push_back({x, d.p99, "", title("p99", d.p99)});
      p50.points.push_back({x, d.p50, PointLabel(run), title("p50", d.p50)});
      low = low == 0 ? d.p50 : std::min(low, d.p50);
      high = std::max(high, d.p99);
    }
    points += p50.points.size();
    plot.series.push_back(std::move(p99));
    plot.series.push_back(std::move(p50));
  }
  if (points < 2) return {};
  plot.log_y = low > 0 && high > kWideSpread * low;
  plot.y_label = fmt::format("{}, ms{}", name, plot.log_y ? " (logarithmic)" : "");
  return SvgPlot(plot);
}

struct Curve {
  const RunResult* run;
  std::string label;
};

std::vector<Curve> Curves(const std::vector<RunResult>& runs) {
  std::vector<Curve> some;
  const std::vector<std::string> labels = ShortLabels(runs);
  const size_t count = std::min(runs.size(), kMostCurves);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = count < 2 ? 0 : i * (runs.size() - 1) / (count - 1);
    some.push_back({&runs[at], labels[at]});
  }
  return some;
}

struct PlottedLatency {
  std::string_view name;
  double RequestTimes::*time;  // null: gaps
};
constexpr PlottedLatency kPlottedLatencies[] = {{"TTFT", &RequestTimes::ttft_ms},
                                                {"TPOT", &RequestTimes::tpot_ms},
                                                {"ITL", nullptr},
                                                {"E2EL", &RequestTimes::e2el_ms}};

std::vector<double> PlottedValues(const RunResult& run, const PlottedLatency& latency) {
  std::vector<double> values;
  const bool per_token = run.figures.itl_per_token && GapsPerToken(run.records);
  for (const RequestRecord& r : run.records) {
    if (r.outcome != Outcome::kCompleted || r.first_ns == 0) continue;
    if (latency.time == nullptr) {
      AppendGaps(r, per_token && CountsTokens(r), &values);
    } else if (const double value = TimesOf(r).*latency.time; value >= 0) {
      values.push_back(value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

PlotSeries Cumulative(const std::vector<double>& sorted, std::string name, int color) {
  PlotSeries series{
      .kind = PlotSeries::Kind::kLine, .name = std::move(name), .points = {}, .color = color};
  if (!sorted.empty()) series.points.push_back({sorted[0], 0, "", ""});
  for (size_t i = 0; i < sorted.size(); ++i) {
    // Of a run of millions of gaps only what is drawn is made.
    const bool drawn = sorted.size() <= kCurvePoints || i + 1 == sorted.size() ||
                       i * (kCurvePoints - 1) / (sorted.size() - 1) !=
                           (i + 1) * (kCurvePoints - 1) / (sorted.size() - 1);
    if (drawn) {
      series.points.push_back({sorted[i], 100 * (i + 1.0) / sorted.size(), "", ""});
    }
  }
  return series;
}

PlotSeries Percentiles(const std::vector<double>& sorted) {
  PlotSeries series{.kind = PlotSeries::Kind::kPoints, .name = "", .points = {}, .color = 1};
  for (double percent : {50.0, 90.0, 99.0}) {
    const double value = Percentile(sorted, percent);
    series.points.push_back({value, percent, fmt::format("p{:.0f} {}", percent, Figure(value)),
                             fmt::format("p{:.0f}: {} ms", percent, Figure(value))});
  }
  return series;
}

std::string CumulativePlot(const std::vector<Curve>& curves, const PlottedLatency& latency) {
  Plot plot;
  plot.x_from_zero = true;
  plot.y_max = 100;
  plot.y_label = "% of values at most so long";
  bool per_token = false, any = false, positive = true;
  double median = 0, slowest = 0;
  size_t n = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    const RunResult& run = *curves[i].run;
    const std::vector<double> values = PlottedValues(run, latency);
    if (values.empty()) continue;
    any = true;
    n = values.size();
    per_token = per_token || run.figures.itl_per_token;
    positive = positive && values.front() > 0;
    const double own_median = Percentile(values, 50);
    median = plot.series.empty() ? own_median : std::min(median, own_median);
    slowest = std::max(slowest, values.back());
    plot.series.push_back(
        Cumulative(values, curves.size() == 1 ? "" : fmt::format("{} (n {})", curves[i].label, n),
                   static_cast<int>(i)));
    if (curves.size() == 1) plot.series.push_back(Percentiles(values));
  }
  if (!any) return {};
  plot.title = std::string(latency.name);
  if (latency.time == nullptr) plot.title += per_token ? ", per token" : ", per chunk";
  if (curves.size() == 1) plot.title += fmt::format(", n = {}", n);
  plot.log_x = positive && slowest > kWideSpread * median;
  plot.x_label = fmt::format("{}, ms{}", latency.name, plot.log_x ? " (logarithmic)" : "");
  return SvgPlot(plot);
}

using Sample = double ServerSample::*;

PlotSeries Over(const RunResult& run, Sample member, std::string name, double scale, int color) {
  PlotSeries series{
      .kind = PlotSeries::Kind::kStep, .name = std::move(name), .points = {}, .color = color};
  for (const ServerSample& s : run.server) {
    if (s.*member >= 0) series.points.push_back({s.at_s, s.*member * scale, "", ""});
  }
  series.points = ThinCurve(std::move(series.points), kCurvePoints);
  return series;
}

std::string Timeline(std::string title, std::string y_label, std::vector<PlotSeries> series,
                     double y_max) {
  Plot plot;
  plot.title = std::move(title);
  plot.x_label = "seconds after the start";
  plot.y_label = std::move(y_label);
  plot.y_max = y_max;
  plot.whole_y = y_max == 0;
  bool any = false;  // a plot of zeros tells nothing
  for (PlotSeries& s : series) {
    if (s.points.size() < 2) continue;
    any = any ||
          std::any_of(s.points.begin(), s.points.end(), [](const PlotPoint& p) { return p.y > 0; });
    plot.series.push_back(std::move(s));
  }
  return any ? SvgPlot(plot) : std::string();
}

}  // namespace

std::string TtftAgainstThroughput(const std::vector<RunResult>& runs) {
  return LatencyAgainstThroughput(runs, "TTFT", &Figures::ttft_ms);
}

std::string TpotAgainstThroughput(const std::vector<RunResult>& runs) {
  return LatencyAgainstThroughput(runs, "TPOT", &Figures::tpot_ms);
}

std::vector<size_t> ParetoFront(const std::vector<RunResult>& runs) {
  std::vector<size_t> order;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (std::isfinite(PerUser(runs[i]))) order.push_back(i);
  }
  // From the fastest for a user down: each that gives the machine more than all before is on it.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const double ua = PerUser(runs[a]), ub = PerUser(runs[b]);
    return ua != ub ? ua > ub
                    : runs[a].figures.output_throughput > runs[b].figures.output_throughput;
  });
  std::vector<size_t> front;
  double most = -1;
  for (size_t i : order) {
    if (runs[i].figures.output_throughput <= most) continue;
    most = runs[i].figures.output_throughput;
    front.push_back(i);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

// One server: its front, and what is beaten. Several: a curve each, so that they can be compared.
std::string ParetoPlot(const std::vector<RunResult>& runs) {
  const std::vector<std::string> labels = ShortLabels(runs);
  const auto point = [&](size_t i) {
    const double user = PerUser(runs[i]), machine = runs[i].figures.output_throughput;
    return PlotPoint{user, machine, PointLabel(runs[i]),
                     fmt::format("{}: {} tokens/s for a user, {} tokens/s in all", labels[i],
                                 Figure(user), Figure(machine))};
  };
  Plot plot;
  const std::vector<ServerRuns> servers = ByServer(runs);
  if (servers.size() > 1) {
    for (const ServerRuns& server : servers) {
      PlotSeries series{.name = server.short_name, .points = {}};
      for (const size_t i : server.runs) {
        if (std::isfinite(PerUser(runs[i]))) series.points.push_back(point(i));
      }
      plot.series.push_back(std::move(series));
    }
  } else {
    PlotSeries front{.name = "Pareto front", .points = {}, .color = 0};
    PlotSeries others{
        .kind = PlotSeries::Kind::kPoints, .name = "beaten in both", .points = {}, .color = 5};
    const std::vector<size_t> best = ParetoFront(runs);
    for (size_t i : best) front.points.push_back(point(i));
    for (size_t i = 0; i < runs.size(); ++i) {
      const bool beaten = std::find(best.begin(), best.end(), i) == best.end();
      if (beaten && std::isfinite(PerUser(runs[i]))) others.points.push_back(point(i));
    }
    plot.series.push_back(std::move(front));
    if (!others.points.empty()) plot.series.push_back(std::move(others));
  }
  size_t points = 0;
  for (const PlotSeries& series : plot.series) points += series.points.size();
  if (points < 2) return {};
  plot.title = "Throughput of the machine against speed for a user";
  plot.x_label = "output tokens/s for a user (1 / mean TPOT)";
  plot.y_label = "output tokens/s of the server";
  return SvgPlot(plot);
}

std::string GoodputPlot(const std::vector<RunResult>& runs) {
  const bool by_rate =
      std::all_of(runs.begin(), runs.end(), [](const RunResult& r) { return r.request_rate > 0; });
  Plot plot;
  size_t points = 0;
  int color = 2;
  const std::vector<std::string> labels = ShortLabels(runs);
  for (const ServerRuns& server : ByServer(runs)) {
    PlotSeries good{.name = SeriesName(server, "goodput"), .points = {}, .color = color++};
    PlotSeries all{
        .name = SeriesName(server, "all completed requests"), .points = {}, .color = color++ + 2};
    for (const size_t i : server.runs) {
      const RunResult& run = runs[i];
      if (run.figures.goodput < 0) continue;
      const double x = by_rate ? run.request_rate : run.max_concurrency;
      if (x <= 0) continue;
      good.points.push_back(
          {x, run.figures.goodput, "",
           fmt::format("{}: {} requests/s kept the promise, {:.1f} %", labels[i],
                       Figure(run.figures.goodput), run.figures.good_share * 100)});
      all.points.push_back(
          {x, run.figures.request_throughput, "",
           fmt::format("{}: {} requests/s", labels[i], Figure(run.figures.request_throughput))});
    }
    points += good.points.size();
    plot.series.push_back(std::move(good));
    plot.series.push_back(std::move(all));
  }
  if (points < 2) return {};
  plot.title = by_rate ? "Goodput against rate" : "Goodput against concurrency";
  plot.x_label = by_rate ? "requests/s asked for" : "requests under way at most";
  plot.y_label = "requests/s";
  return SvgPlot(plot);
}

std::vector<std::string> DistributionPlots(const std::vector<RunResult>& runs) {
  std::vector<std::string> plots;
  const std::vector<Curve> curves = Curves(runs);
  for (const PlottedLatency& latency : kPlottedLatencies) {
    std::string plot = CumulativePlot(curves, latency);
    if (!plot.empty()) plots.push_back(std::move(plot));
  }
  return plots;
}

std::vector<std::string> ServerPlots(const RunResult& run) {
  std::vector<std::string> plots = {
      Timeline("Requests in the server", "requests",
               {Over(run, &ServerSample::running, "running", 1, 0),
                Over(run, &ServerSample::waiting, "waiting", 1, 1)},
               0),
      Timeline("KV cache in use", "%", {Over(run, &ServerSample::kv_usage, "", 100, 0)}, 100),
      Timeline("Preemptions since the start", "preemptions",
               {Over(run, &ServerSample::preemptions, "", 1, 0)}, 0),
      Timeline("Prompt tokens found in the prefix cache", "%",
               {Over(run, &ServerSample::prefix_hit_rate, "", 100, 0)}, 100),
  };
  std::erase_if(plots, [](const std::string& plot) { return plot.empty(); });
  return plots;
}

}  // namespace vivace::load
