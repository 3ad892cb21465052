// What tuning found, for people and for programs: the table in the terminal, pareto.json and
// pareto.csv, report.html with its plots, and the configuration for `vivace serve --config`. Pure,
// but for WriteReports.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "base/result.h"
#include "tune/result.h"

namespace vivace::tune {

struct ReportOptions {
  std::string command;             // that made it
  std::string model;               // for the configuration: what `serve` takes
  boost::json::object fixed = {};  // flags that were given and not tuned, by their names
  std::string out;
};

std::string TerminalTable(const TuneResult& result);
// Why the winner wins: batch reached, queue, preemptions, steps; against the defaults and the next.
std::vector<std::string> Reasons(const TuneResult& result);
std::string ParetoJson(const TuneResult& result, const ReportOptions& options);
std::string ParetoCsv(const TuneResult& result);
std::string ReportHtml(const TuneResult& result, const ReportOptions& options);
// Only if there is a winner.
std::string ConfigJson(const TuneResult& result, const ReportOptions& options);

// All of them into options.out, each replaced as a whole.
Status WriteReports(const TuneResult& result, const ReportOptions& options);

}  // namespace vivace::tune
