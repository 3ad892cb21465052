#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "load/report/report.h"
#include "load/report/report_plots.h"
#include "load/report/svg_axis.h"
#include "load/report/svg_plot.h"
#include "load/report/waterfall.h"
#include "load/testing/make_run.h"

namespace vivace::load {
namespace {

using testing::Completed;
using ::testing::ElementsAre;
using testing::Failed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeRun;
using ::testing::Not;

// Whether every element that is opened is closed, in order; what is wrong, otherwise. It reads what
// our writers write: quoted attributes, no comments, void elements of HTML.
std::string WhyNotWellFormed(std::string_view text) {
  static const std::set<std::string_view> kVoid = {"meta", "input", "br"};
  std::vector<std::string> open;
  for (size_t pos = 0; (pos = text.find('<', pos)) != text.npos;) {
    if (text.substr(pos, 2) == "<!") {
      pos = text.find('>', pos);
      continue;
    }
    const size_t end = text.find('>', pos);
    if (end == text.npos) return "a tag has no end";
    const std::string_view tag = text.substr(pos + 1, end - pos - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes of " + std::string(tag);
    const std::string name(
        tag.substr(tag[0] == '/', tag.find_first_of(" /\n", 1) - (tag[0] == '/')));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "closes " + name;
      open.pop_back();
    } else if (tag.back() != '/' && !kVoid.contains(name)) {
      open.push_back(name);
    }
    pos = end;
  }
  return open.empty() ? "" : "never closes " + open.back();
}

std::vector<RunResult> LoadRuns() {
  std::vector<RunResult> runs;
  for (int32_t c : {1, 4, 8, 16}) {
    runs.push_back(MakeRun({.concurrency = c, .requests = 10 * c, .tpot_ms = 8 + 0.8 * c}));
    runs.back().promises = {{Promise::What::kTtft, 70}};
    runs.back().figures = ComputeFigures(runs.back().records, runs.back().promises);
  }
  return runs;
}

TEST(Ticks, AreRound) {
  EXPECT_THAT(RoundTicks(0, 9.3, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundTicks(0, 1, 4), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(RoundTicks(130, 470, 4), ElementsAre(100, 200, 300, 400, 500));
  EXPECT_THAT(RoundTicks(5, 5, 4).size(), ::testing::Ge(2u));
  EXPECT_THAT(RoundTicks(NAN, INFINITY, 4).size(), ::testing::Ge(2u));
}

TEST(Ticks, LabelsOfAnAxisAreOfOneKind) {
  EXPECT_THAT(TickLabels({0, 0.5, 1}), ElementsAre("0", "0.5", "1.0"));
  EXPECT_THAT(TickLabels({0, 2500, 5000}), ElementsAre("0", "2500", "5000"));
  EXPECT_THAT(TickLabels({0, 25'000, 50'000}), ElementsAre("0", "25k", "50k"));
  EXPECT_THAT(TickLabels({0, 2'500'000, 5'000'000}), ElementsAre("0", "2.5M", "5.0M"));
  EXPECT_EQ(ShortNumber(0.0123), "0.0123");
  EXPECT_EQ(ShortNumber(12'300), "12.3k");
  EXPECT_EQ(ShortNumber(100), "100");
  EXPECT_EQ(ShortNumber(NAN), "-");
}

TEST(Axis, PutsValuesWhereTheyBelong) {
  const Axis linear({.low = 2,
                     .high = 10,
                     .log = false,
                     .from_zero = true,
                     .from_px = 0,
                     .to_px = 100,
                     .ticks = 5});
  EXPECT_DOUBLE_EQ(linear.At(0), 0);
  EXPECT_DOUBLE_EQ(linear.At(5), 50);
  EXPECT_DOUBLE_EQ(linear.At(99), 100);  // beyond stands at the end
  const Axis log({.low = 1,
                  .high = 100,
                  .log = true,
                  .from_zero = false,
                  .from_px = 0,
                  .to_px = 100,
                  .ticks = 5});
  EXPECT_DOUBLE_EQ(log.At(10), 50);
}

TEST(Markup, NothingOfAStrangerIsMarkup) {
  EXPECT_EQ(EscapeMarkup("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
  EXPECT_EQ(EscapeMarkup(std::string("a\0b\x1b", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(EscapeMarkup("\xff"), "\xEF\xBF\xBD");
  EXPECT_EQ(EscapeMarkup("a\xE2\x80\xAE"), "a\xEF\xBF\xBD");  // right-to-left override
  EXPECT_EQ(EscapeMarkup("größer"), "größer");
}

TEST(SvgPlot, IsWellFormedWhateverItsTexts) {
  Plot plot;
  plot.title = "<b>\"t\"</b>";
  plot.x_label = "a&b";
  plot.y_label = "\x01";
  for (int s = 0; s < 10; ++s) {
    PlotSeries series{.name = "<i>" + std::to_string(s)};
    for (int i = 0; i < 5; ++i) series.points.push_back({i * 1.0, i * s * 1.0, "p<", "q\"<"});
    plot.series.push_back(series);
  }
  const std::string svg = SvgPlot(plot);
  EXPECT_EQ(WhyNotWellFormed(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgPlot, LeavesOutWhatIsNoNumber) {
  Plot plot{.title = "t"};
  plot.series = {{.name = "s", .points = {{NAN, 1, "", ""}, {1, INFINITY, "", ""}}}};
  EXPECT_THAT(SvgPlot(plot), HasSubstr("no data"));
  plot.series[0].points.push_back({1, 2, "", ""});
  const std::string svg = SvgPlot(plot);
  EXPECT_THAT(svg, Not(HasSubstr("no data")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  plot.log_x = plot.log_y = true;
  plot.series[0].points.push_back({0, -1, "", ""});  // has no place on a logarithmic axis
  EXPECT_EQ(WhyNotWellFormed(SvgPlot(plot)), "");
}

TEST(SvgPlot, LabelsDoNotCoverEachOther) {
  Plot plot{.title = "t"};
  PlotSeries series;
  for (int i = 0; i < 30; ++i) series.points.push_back({100 + i * 1.0, 100, "label", ""});
  plot.series = {series};
  const std::string svg = SvgPlot(plot);
  size_t labels = 0;
  for (size_t pos = 0; (pos = svg.find("class=\"mark\"", pos)) != svg.npos; ++pos) ++labels;
  EXPECT_GT(labels, 2u);
  EXPECT_LT(labels, 30u);  // the others are in the points' titles
}

TEST(SvgHeatMap, IsWellFormedAndHasHoles) {
  HeatMap map{.title = "<t>",
              .x_label = "batch",
              .y_label = "seqs",
              .value_label = "tokens/s",
              .columns = {"256", "512"},
              .rows = {"4", "<8>"},
              .values = {1, 2, NAN, 4}};
  map.marked = {{1, 1}, {9, 9}};
  const std::string svg = SvgHeatMap(map);
  EXPECT_EQ(WhyNotWellFormed(svg), "");
  EXPECT_THAT(svg, HasSubstr("class=\"hole\""));
  EXPECT_THAT(svg, HasSubstr("class=\"winner\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(WhyNotWellFormed(SvgHeatMap({})), "");
}

TEST(ThinCurve, KeepsTheEnds) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({i * 1.0, 0, "", ""});
  const auto thin = ThinCurve(points, 10);
  ASSERT_EQ(thin.size(), 10u);
  EXPECT_EQ(thin.front().x, 0);
  EXPECT_EQ(thin.back().x, 999);
}

TEST(Waterfall, ShowsStallsAndFailures) {
  RunResult run;
  run.records = {Completed(0, 0, {50, 60, 70, 80, 200, 210}),
                 Completed(1, 0, {50, 60, 70, 80, 90, 100}),
                 Failed(2, 5, Outcome::kRefused, "</title><script>")};
  const std::string svg = SvgWaterfall(run, 100);
  EXPECT_EQ(WhyNotWellFormed(svg), "");
  size_t stalls = 0;
  for (size_t pos = 0; (pos = svg.find("class=\"stall\"/>", pos)) != svg.npos; ++pos) ++stalls;
  EXPECT_EQ(stalls, 2u);  // one in the legend, one of 120 ms where the median is 10
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(SvgWaterfall(run, 2), HasSubstr("2 of 3, evenly chosen"));
  EXPECT_THAT(SvgWaterfall(RunResult{}, 100), IsEmpty());
}

TEST(Pareto, FrontIsWhatNothingBeatsInBoth) {
  std::vector<RunResult> runs(4);
  const std::pair<double, double> points[] = {{10, 100}, {20, 180}, {25, 170}, {40, 300}};
  for (size_t i = 0; i < 4; ++i) {  // (TPOT in ms, tokens/s)
    runs[i].figures.tpot_ms.n = 1;
    runs[i].figures.tpot_ms.mean = points[i].first;
    runs[i].figures.output_throughput = points[i].second;
  }
  EXPECT_THAT(ParetoFront(runs), ElementsAre(3, 1, 0));  // by rising speed for a user
}

TEST(ReportHtml, IsWellFormedAndWhole) {
  for (const auto& runs : {LoadRuns(), std::vector<RunResult>{LoadRuns()[2]},
                           std::vector<RunResult>{RunResult{}}, std::vector<RunResult>{}}) {
    const std::string html = ReportHtml(runs);
    const std::string body = html.substr(html.find("<body>"));
    EXPECT_EQ(WhyNotWellFormed(html.substr(0, html.find("<style>")) + "</head>" + body), "");
    EXPECT_THAT(html, Not(HasSubstr("nan")));
    EXPECT_THAT(html, HasSubstr("id=\"definitions\""));
  }
  const std::string html = ReportHtml(LoadRuns());
  for (const char* part : {"TTFT against throughput", "Pareto front", "Goodput against concurrency",
                           "ITL, per chunk", "Requests over time", "Environment and settings"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
}

TEST(ReportHtml, LoadsNothingAndRunsNothing) {
  RunResult run = LoadRuns()[1];
  run.model = "</title><script>alert(1)</script>";
  run.label = "\"><img src=x onerror=alert(1)>";
  run.workload = "<svg/onload=alert(1)>";
  run.base_url = "javascript:alert(1)";
  run.environment["<b>cpu</b>"] = "<script src='http://evil/x.js'></script>";
  run.records.push_back(Failed(99, 1000, Outcome::kGarbage, "<script>alert(2)</script>"));
  run.figures = ComputeFigures(run.records, run.promises);
  const std::string html = ReportHtml({run, run});
  for (const char* bad : {"<script", "<img", "<svg/", "<b>cpu", "href=\"http", "src=\"", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(bad))) << bad;
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(ReportHtml, IsBoundedWhateverTheRun) {
  // 300 requests of 500 tokens: curves are thinned, rows chosen.
  const RunResult run = MakeRun({.concurrency = 32, .requests = 300, .tokens = 500});
  EXPECT_LT(ReportHtml({run}).size(), 1'000'000u);
}

}  // namespace
}  // namespace vivace::load
