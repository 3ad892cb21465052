#include "load/report/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/report/report.h"
#include "load/report/report_plots.h"
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

}  // namespace
}  // namespace vivace::load
