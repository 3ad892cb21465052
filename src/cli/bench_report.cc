#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "load/compat.h"
#include "load/report/report.h"
#include "load/report/servers.h"

namespace vivace::cli {
namespace {

struct BenchReportOptions {
  std::string html, csv, compat;
  bool json = false;
};

Command BenchReportCommand(BenchReportOptions* options) {
  return {
      .name = "bench report",
      .positional = "REPORT.json ...",
      .summary = "Makes tables and pages again from saved results.",
      .details =
          "Runs of several files stand in one table. Distributions and the waterfall need "
          "results made with\n--save-detailed. Result files of `vllm bench serve` are read as "
          "well.\n\n"
          "Examples:\n  vivace bench report run.json\n"
          "  vivace bench report c1.json c4.json c8.json --html report.html\n"
          "  vivace bench report run.json --compat guidellm",
      .flags = {
          {"html", "PATH", "", "write one HTML file that needs nothing else",
           StoreText(&options->html)},
          {"csv", "PATH", "", "write a table, a row for each run", StoreText(&options->csv)},
          {"compat", "TOOL", "",
           "also print by the definitions of vllm, sglang, mlc, guidellm or aiperf",
           StoreText(&options->compat)},
          {"json", "", "off", "one JSON object instead of a table", StoreSwitch(&options->json)}}};
}

// Runs of several files that are called alike are called by their files too. `files`: of each run.
void TellFilesApart(const std::vector<std::string>& files, std::vector<load::RunResult>* runs) {
  std::map<std::string, std::set<std::string>> of_label;
  for (size_t i = 0; i < runs->size(); ++i) {
    of_label[load::FullLabel((*runs)[i])].insert(files[i]);
  }
  std::map<std::string, std::set<std::string>> of_stem;
  const auto stem = [](const std::string& file) {
    return std::filesystem::path(file).stem().string();
  };
  for (const std::string& file : files) of_stem[stem(file)].insert(file);
  for (size_t i = 0; i < runs->size(); ++i) {
    load::RunResult& run = (*runs)[i];
    if (of_label[load::FullLabel(run)].size() < 2) continue;
    const std::string& file = files[i];
    run.label = fmt::format("{}{}{}", of_stem[stem(file)].size() < 2 ? stem(file) : file,
                            run.label.empty() ? "" : " ", run.label);
  }
}

}  // namespace

int BenchReport(std::span<const std::string> args) {
  BenchReportOptions options;
  const auto words =
      ParseWords(BenchReportCommand(&options), args, {1, kAnyWords, "give a saved result"});
  if (!words) return words.error();
  if (!options.compat.empty()) {
    if (const auto tool = load::FindCompatTool(options.compat); !tool) return Refuse(tool.error());
  }
  if (const Status files = CheckOutputPaths({options.html, options.csv}); !files) {
    return Refuse(files.error());
  }
  std::vector<load::RunResult> runs;
  std::vector<std::string> files;  // of each run
  for (const std::string& path : *words) {
    auto report = load::ReadReport(path);
    if (!report) return Refuse(report.error());
    for (load::RunResult& run : *report) {
      runs.push_back(std::move(run));
      files.push_back(path);
    }
  }
  load::TellServersApart(&runs);
  TellFilesApart(files, &runs);
  fmt::print("{}", options.json ? load::ReportJson(runs, true) + "\n"
                                : load::TerminalTable(runs, options.compat));
  const std::pair<const std::string*, std::string (*)(const std::vector<load::RunResult>&)>
      kFiles[] = {{&options.html, load::ReportHtml}, {&options.csv, load::ReportCsv}};
  for (const auto& [path, make] : kFiles) {
    if (path->empty()) continue;
    if (const Status written = WriteOutput(*path, make(runs)); !written) {
      return Refuse(written.error());
    }
  }
  return 0;
}

}  // namespace vivace::cli
