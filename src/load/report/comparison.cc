// A comparison as text and as JSON.
#include <fmt/format.h>

#include <cmath>

#include "load/compare.h"
#include "load/report/json_writer.h"
#include "load/report/text.h"

namespace vivace::load {
namespace {

char Letter(size_t report) { return static_cast<char>('A' + report); }

std::string Change(double ratio) {
  if (std::isinf(ratio)) return "from 0";
  return std::isfinite(ratio) ? fmt::format("{:+.1f} %", (ratio - 1) * 100) : "-";
}

std::string IntervalText(const ComparedValue& v) {
  return std::isfinite(v.low) && std::isfinite(v.high)
             ? fmt::format("{:+.1f} to {:+.1f} %", (v.low - 1) * 100, (v.high - 1) * 100)
             : "";
}

std::string ComparisonRow(const ComparedFigure& figure, size_t other) {
  const ComparedValue& v = figure.others[other];
  const std::string verdict = v.verdict == Verdict::kNone ? "-" : std::string(Name(v.verdict));
  return fmt::format("  {:<20} {:>10} {:>10} {:>9}  {:>19}  {}\n", figure.name, Figure(figure.base),
                     Figure(v.value), Change(v.ratio), IntervalText(v), verdict);
}

std::string RunText(const ComparedRun& run, const Comparison& comparison) {
  std::string out;
  for (size_t other = 0; other + 1 < comparison.names.size(); ++other) {
    out += fmt::format("\n{}{} against A\n", run.label.empty() ? "" : Printable(run.label) + ", ",
                       Letter(other + 1));
    out += fmt::format("  {:<20} {:>10} {:>10} {:>9}  {:>19}  verdict\n", "", "A",
                       std::string(1, Letter(other + 1)), "change",
                       fmt::format("{:g} % interval", comparison.options.confidence * 100));
    for (const ComparedFigure& figure : run.figures) out += ComparisonRow(figure, other);
  }
  for (const std::string& warning : run.warnings) {
    out += fmt::format("  note: {}\n", Printable(warning, 400));
  }
  return out;
}

std::string Footer(const Comparison& comparison) {
  bool paired = false;
  for (const ComparedRun& run : comparison.runs) {
    for (const ComparedFigure& figure : run.figures) {
      for (const ComparedValue& v : figure.others) paired = paired || v.paired;
    }
  }
  return fmt::format(
      "\nLatencies in ms, of completed requests{}; rates over {} of each run. Changes below {:g} % "
      "count as none.\nAn interval tells of the requests within these runs, not of how a run "
      "varies "
      "from the next: repeat what matters.\n",
      paired ? ", request by request where both runs sent the same" : "", "slices of the time",
      comparison.options.least * 100);
}

void Value(JsonWriter& json, const ComparedValue& v, size_t report) {
  json.BeginObject().Key("report").Int(static_cast<int64_t>(report));
  json.Key("value").Number(v.value).Key("ratio").Number(v.ratio);
  json.Key("low").Number(v.low).Key("high").Number(v.high);
  json.Key("paired").Bool(v.paired).Key("verdict").Text(Name(v.verdict)).EndObject();
}

}  // namespace

std::string ComparisonText(const Comparison& comparison) {
  std::string out;
  for (size_t i = 0; i < comparison.names.size(); ++i) {
    out += fmt::format("{}  {}\n", Letter(i), Printable(comparison.names[i]));
  }
  for (const std::string& warning : comparison.warnings) {
    out += fmt::format("note: {}\n", Printable(warning, 400));
  }
  for (const ComparedRun& run : comparison.runs) out += RunText(run, comparison);
  return out + Footer(comparison);
}

std::string ComparisonJson(const Comparison& comparison) {
  std::string out;
  JsonWriter json(&out);
  json.BeginObject();
  json.Key("reports").Texts(comparison.names);
  json.Key("warnings").Texts(comparison.warnings);
  json.Key("confidence").Number(comparison.options.confidence);
  json.Key("least").Number(comparison.options.least);
  json.Key("runs").BeginArray();
  for (const ComparedRun& run : comparison.runs) {
    json.BeginObject().Key("label").Text(run.label);
    json.Key("warnings").Texts(run.warnings);
    json.Key("figures").BeginArray();
    for (const ComparedFigure& figure : run.figures) {
      json.BeginObject().Key("name").Text(figure.name).Key("unit").Text(figure.unit);
      json.Key("better").Text(figure.high_is_good ? "higher" : "lower");
      json.Key("base").Number(figure.base).Key("against").BeginArray();
      for (size_t i = 0; i < figure.others.size(); ++i) Value(json, figure.others[i], i + 1);
      json.EndArray().EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return out;
}

}  // namespace vivace::load
