#include <fmt/format.h>

#include <cmath>

#include "load/report/fields.h"
#include "load/report/report.h"
#include "load/report/text.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

constexpr size_t kMostCharacters = 1'000;

// RFC 4180, one line; a text that a spreadsheet would take for a formula gets a quote in front.
std::string CsvQuoted(std::string_view text) {
  std::string out = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) {
    out += '\'';
  }
  for (char c : Printable(text, kMostCharacters)) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string Number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

std::string CsvMember(const Figures& figures, const FigureField& field) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto value = static_cast<double>(figures.*member);
        return field.may_lack && value < 0 ? "" : Number(value);
      },
      field.member);
}

std::string RampCells(const LoadPoint& load) {
  const bool ramps = load.ramp != ArrivalOptions::Ramp::kNone;
  return fmt::format("{},{},{},{}", Name(load.ramp), ramps ? Number(load.ramp_from) : "",
                     ramps ? Number(load.ramp_to) : "", load.own_times);
}

std::string Header() {
  std::string out =
      "label,model_id,base_url,endpoint,workload,seed,max_concurrency,request_rate,"
      "burstiness,ramp_up_strategy,ramp_up_start_rps,ramp_up_end_rps,own_times,valid,invalid_"
      "because";
  for (const FigureField& field : FigureFields()) out += fmt::format(",{}", field.name);
  for (const LatencyField& latency : LatencyFields()) {
    out += fmt::format(",n_{}", latency.name);
    for (const StatField& stat : StatFields()) out += "," + StatName(stat, latency);
  }
  return out + "\n";
}

std::string CsvRow(const RunResult& run) {
  const auto why = InvalidBecause(run);
  std::string out =
      fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", CsvQuoted(run.label), CsvQuoted(run.model),
                  CsvQuoted(run.base_url), CsvQuoted(run.endpoint), CsvQuoted(run.workload),
                  run.seed, run.max_concurrency > 0 ? fmt::to_string(run.max_concurrency) : "",
                  run.request_rate > 0 ? Number(run.request_rate) : "inf", Number(run.burstiness),
                  RampCells(run), why.empty(), CsvQuoted(fmt::format("{}", fmt::join(why, "; "))));
  for (const FigureField& field : FigureFields()) out += "," + CsvMember(run.figures, field);
  for (const LatencyField& latency : LatencyFields()) {
    const Distribution& d = run.figures.*latency.member;
    out += fmt::format(",{}", d.n);
    for (const StatField& stat : StatFields()) {
      out += "," + (d.n > 0 ? Number(d.*stat.member) : "");
    }
  }
  return out + "\n";
}

}  // namespace

std::string ReportCsv(const std::vector<RunResult>& runs) {
  std::string out = Header();
  for (const RunResult& run : runs) out += CsvRow(run);
  return out;
}

}  // namespace vivace::load
