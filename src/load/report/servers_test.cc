#include "load/report/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "load/report/report.h"
#include "load/report/report_plots.h"
#include "load/report/text.h"
#include "load/testing/make_run.h"

namespace vivace::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeRun;
using ::testing::Not;

std::vector<RunResult> RunsAt(std::vector<std::pair<std::string, std::string>> address_owner) {
  std::vector<RunResult> runs;
  for (const auto& [address, owner] : address_owner) {
    for (const int32_t concurrency : {1, 4}) {
      runs.push_back(MakeRun({.concurrency = concurrency, .requests = 8}));
      runs.back().base_url = "http://" + address;
      runs.back().environment = {{"server_model_owner", owner}, {"client_cpus", "2"}};
    }
  }
  TellServersApart(&runs);
  return runs;
}

std::vector<std::string> NamesOf(const std::vector<RunResult>& runs) {
  std::vector<std::string> names;
  for (const ServerRuns& server : ByServer(runs)) names.push_back(server.name);
  return names;
}

TEST(Servers, OneNeedsNoName) {
  const auto runs = RunsAt({{"h:1", "vivace"}});
  EXPECT_THAT(NamesOf(runs), ElementsAre(""));
  EXPECT_EQ(FullLabel(runs[1]), "c=4");
}

TEST(Servers, AreNamedByWhoOwnsTheModelOrWhereTheyAre) {
  const auto runs = RunsAt({{"h:1", "vivace"}, {"h:2", "llamacpp"}, {"h:3", ""}});
  EXPECT_THAT(NamesOf(runs), ElementsAre("vivace", "llamacpp", "h:3"));
  EXPECT_EQ(FullLabel(runs[3]), "llamacpp c=4");
  EXPECT_THAT(ByServer(runs)[1].runs, ElementsAre(2, 3));
}

TEST(Servers, OfOneOwnerAreToldApartByAddress) {
  EXPECT_THAT(NamesOf(RunsAt({{"h:1", "vivace"}, {"h:2", "vivace"}})),
              ElementsAre("vivace at h:1", "vivace at h:2"));
}

TEST(Servers, HaveCurvesAndColumnsOfTheirOwn) {
  const auto runs = RunsAt({{"h:1", "vivace"}, {"h:2", "llamacpp"}});
  for (const std::string& plot : {TtftAgainstThroughput(runs), TpotAgainstThroughput(runs)}) {
    EXPECT_THAT(plot, HasSubstr(">vivace p50<"));
    EXPECT_THAT(plot, HasSubstr(">llamacpp p50<"));
  }
  EXPECT_THAT(ParetoPlot(runs), HasSubstr(">llamacpp<"));
  EXPECT_THAT(ParetoPlot(runs), Not(HasSubstr("Pareto front")));
  const std::string page = ReportHtml(runs);
  EXPECT_THAT(page, HasSubstr("<h1>vivace and llamacpp</h1>"));
  EXPECT_THAT(page, HasSubstr("<td>http://h:1/v1/completions</td><td>http://h:2/v1/completions"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">client_cpus</th><td colspan=\"2\">2</td>"));
  EXPECT_THAT(TerminalTable(runs, ""), HasSubstr("llamacpp c=4"));
}

TEST(Servers, WithLongNamesKeepTheirEndsAndTheirLoads) {
  const auto runs = RunsAt({{"gpu-node-17.cluster.internal:8000", "vivace bench simulate"},
                            {"gpu-node-17.cluster.internal:8001", "vivace bench simulate"}});
  const std::vector<std::string> labels = ShortLabels(runs);
  EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), runs.size());
  const std::string table = TerminalTable(runs, "vllm"), page = ReportHtml(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_THAT(labels[i], ::testing::EndsWith(i % 2 == 0 ? " c=1" : " c=4"));
    EXPECT_LT(labels[i].size(), FullLabel(runs[i]).size());
    EXPECT_THAT(table, HasSubstr(labels[i]));
    EXPECT_THAT(page, HasSubstr(labels[i] + "</a>"));          // of the summary
    EXPECT_THAT(page, HasSubstr(labels[i] + " (n 8)<"));       // a curve's legend
    EXPECT_THAT(page, HasSubstr(labels[i] + " <span class"));  // a run's heading
    EXPECT_THAT(page, HasSubstr(labels[i] + ": p50 TTFT"));    // a point's title
  }
}

// What differs may be in the middle, too: as much is shown as tells them apart.
TEST(CutApart, KeepsWhatDiffersApart) {
  const std::string long_name(60, 'x');
  const std::vector<std::string> names = {long_name + "1" + long_name, long_name + "2" + long_name,
                                          "short"};
  const std::vector<std::string> cut = CutApart(names, 20);
  EXPECT_NE(cut[0], cut[1]);
  EXPECT_EQ(cut[2], "short");
  EXPECT_EQ(CutApart({names[0], names[0]}, 20)[0].size(), 20u);
  EXPECT_EQ(CutInMiddle("0123456789abcdef", 10), "012...cdef");
  EXPECT_EQ(CutInMiddle("\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc", 7),
            "\u00e4\u00f6...\u00f6\u00fc");
}

}  // namespace
}  // namespace vivace::load
