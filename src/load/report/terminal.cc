#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "load/compat.h"
#include "load/report/fields.h"
#include "load/report/report.h"
#include "load/report/servers.h"
#include "load/report/text.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

constexpr int kBlockWidth = 50;  // of vLLM's block

struct Section {
  std::string_view title, name;
  Distribution Figures::*member;
};
constexpr Section kSections[] = {
    {"Time to First Token", "TTFT", &Figures::ttft_ms},
    {"Time per Output Token (excl. 1st token)", "TPOT", &Figures::tpot_ms},
    {"Inter-token Latency", "ITL", &Figures::itl_ms},
    {"End-to-end Latency", "E2EL", &Figures::e2el_ms},
    {"Queueing in the client", "queueing", &Figures::queue_ms},
    {"Queueing in the server", "queueing", &Figures::server_queue_ms},
};

std::string ValidityText(const RunResult& run, std::string_view label) {
  std::string out;
  const std::string of = label.empty() ? "" : fmt::format(" ({})", Printable(label));
  for (const std::string& why : InvalidBecause(run)) {
    out += fmt::format("INVALID{}: {}\n", of, Printable(why, 400));
  }
  for (const std::string& warning : Warnings(run)) {
    out += fmt::format("note{}: {}\n", of, Printable(warning, 400));
  }
  return out;
}

std::string Failures(const RunResult& run) {
  std::string out;
  for (const auto& [reason, count] : run.figures.failures) {
    out += fmt::format("  {:>6} x {}\n", count, Printable(reason, 400));
  }
  return out.empty() ? out : "Failures:\n" + out;
}

class Block {
 public:
  void Rule(std::string_view title, char fill) {
    const std::string middle = fmt::format("{{:{}^{}}}\n", fill, kBlockWidth);
    out_ += fmt::format(fmt::runtime(middle), title);
  }
  void Row(std::string_view name, const std::string& value) {
    out_ += fmt::format("{:<40} {:<9}\n", fmt::format("{}:", name), value);
  }
  void Count(std::string_view name, int64_t value) { Row(name, fmt::to_string(value)); }
  void Number(std::string_view name, double value) {
    Row(name, std::isfinite(value) ? fmt::format("{:.2f}", value) : "-");
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

void Totals(Block& block, const RunResult& run) {
  const Figures& f = run.figures;
  block.Count("Successful requests", f.completed);
  block.Count("Failed requests", f.failed);
  if (f.not_run > f.interrupted) block.Count("Requests never sent", f.not_run - f.interrupted);
  if (f.interrupted > 0) block.Count("Requests interrupted", f.interrupted);
  if (run.max_concurrency > 0) block.Count("Maximum request concurrency", run.max_concurrency);
  if (run.request_rate > 0) {
    block.Number("Request rate configured (RPS)", run.request_rate);
  } else if (const std::string rate = RateText(run); !rate.empty()) {
    block.Row("Request rate configured", rate);
  }
  block.Number("Benchmark duration (s)", f.duration_s);
  block.Count("Total input tokens", f.input_tokens);
  block.Count("Total generated tokens", f.output_tokens);
  if (f.cached_tokens > 0) block.Count("Input tokens from the prefix cache", f.cached_tokens);
  block.Number("Request throughput (req/s)", f.request_throughput);
  if (f.goodput >= 0) {
    block.Number("Request goodput (req/s)", f.goodput);
    block.Number("Requests that kept the promise (%)", f.good_share * 100);
  }
  block.Number("Output token throughput (tok/s)", f.output_throughput);
  block.Number("Steady output throughput (tok/s)",
               f.steady_s > 0 ? f.steady_output_throughput : NAN);
  if (f.peak_second_tokens >= 0) {
    block.Number("Peak output token throughput (tok/s)", f.peak_second_tokens);
  }
  block.Number("Total token throughput (tok/s)", f.total_throughput);
  block.Count("Peak concurrent requests", f.peak_concurrency);
  block.Number("Mean concurrency", f.mean_concurrency);
}

void LatencyRows(Block& block, const Section& section, const Figures& f) {
  const Distribution& d = f.*section.member;
  if (d.n == 0) return;
  const bool itl = section.member == &Figures::itl_ms;
  block.Rule(itl ? fmt::format("{}, per {}", section.title, f.itl_per_token ? "token" : "chunk")
                 : std::string(section.title),
             '-');
  const std::pair<const char*, double> stats[] = {
      {"Mean", d.mean}, {"Median", d.p50}, {"P90", d.p90}, {"P99", d.p99}};
  for (const auto& [stat, value] : stats) {
    block.Number(fmt::format("{} {} (ms)", stat, section.name), value);
  }
  block.Count("n", d.n);
}

std::string OneRun(const RunResult& run) {
  Block block;
  block.Rule(" Serving Benchmark Result ", '=');
  Totals(block, run);
  for (const Section& section : kSections) LatencyRows(block, section, run.figures);
  block.Rule("", '=');
  return block.Take();
}

// A table whose columns are as wide as what is in them; the first is left-aligned.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  const auto width = [](const std::string& cell) {  // characters, near enough
    return static_cast<size_t>(
        std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width(row[i]), ' ');
      line += i == 0 ? row[i] + pad : "  " + pad + row[i];
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

struct Column {
  std::string_view head;
  double (*value)(const RunResult&);
};

constexpr Column kColumns[] = {
    {"ok", [](const RunResult& r) { return static_cast<double>(r.figures.completed); }},
    {"failed", [](const RunResult& r) { return static_cast<double>(r.figures.failed); }},
    {"req/s", [](const RunResult& r) { return r.figures.request_throughput; }},
    {"out tok/s", [](const RunResult& r) { return r.figures.output_throughput; }},
    {"tok/s/user",
     [](const RunResult& r) { return OfN(r.figures.tpot_ms, 1e3 / r.figures.tpot_ms.mean); }},
    {"TTFT p50", [](const RunResult& r) { return OfN(r.figures.ttft_ms, r.figures.ttft_ms.p50); }},
    {"p99", [](const RunResult& r) { return OfN(r.figures.ttft_ms, r.figures.ttft_ms.p99); }},
    {"TPOT p50", [](const RunResult& r) { return OfN(r.figures.tpot_ms, r.figures.tpot_ms.p50); }},
    {"p99", [](const RunResult& r) { return OfN(r.figures.tpot_ms, r.figures.tpot_ms.p99); }},
    {"ITL p99", [](const RunResult& r) { return OfN(r.figures.itl_ms, r.figures.itl_ms.p99); }},
    {"E2EL p50", [](const RunResult& r) { return OfN(r.figures.e2el_ms, r.figures.e2el_ms.p50); }},
    {"p99", [](const RunResult& r) { return OfN(r.figures.e2el_ms, r.figures.e2el_ms.p99); }},
};

std::string Cell(std::string_view head, double value) {
  const bool count = head == "ok" || head == "failed";
  return count ? fmt::format("{:.0f}", value) : Figure(value);
}

std::string SeveralRuns(const std::vector<RunResult>& runs) {
  const bool goodput = std::any_of(runs.begin(), runs.end(),
                                   [](const RunResult& r) { return r.figures.goodput >= 0; });
  std::vector<std::vector<std::string>> rows(1, {"run"});
  for (const Column& column : kColumns) rows[0].emplace_back(column.head);
  if (goodput) rows[0].emplace_back("goodput");
  const std::vector<std::string> labels = ShortLabels(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunResult& run = runs[i];
    std::vector<std::string> row = {labels[i]};
    if (!InvalidBecause(run).empty()) row[0] += " !";
    for (const Column& column : kColumns) row.push_back(Cell(column.head, column.value(run)));
    if (goodput) row.push_back(Figure(run.figures.goodput >= 0 ? run.figures.goodput : NAN));
    rows.push_back(std::move(row));
  }
  return Table(rows) + "Latencies in ms; goodput in requests a second; ! invalid, see above.\n";
}

std::string Compat(const std::vector<RunResult>& runs, const CompatTool& tool) {
  std::string out = fmt::format("\nBy {}'s definitions ({}):\n", tool.name, tool.about);
  std::vector<std::vector<std::string>> rows(1, {""});
  const std::vector<std::string> labels = ShortLabels(runs);
  for (size_t of = 0; of < runs.size(); ++of) {
    rows[0].push_back(runs.size() == 1 ? "" : labels[of]);
    const auto columns = tool.columns(runs[of]);
    rows.resize(columns.size() + 1);
    for (size_t i = 0; i < columns.size(); ++i) {
      if (rows[i + 1].empty()) rows[i + 1].push_back(columns[i].name);
      rows[i + 1].push_back(Figure(columns[i].value));
    }
  }
  return out + Table(rows);
}

}  // namespace

std::string TerminalTable(const std::vector<RunResult>& runs, std::string_view compat) {
  if (runs.empty()) return "Nothing was measured.\n";
  std::string out;
  for (const RunResult& run : runs)
    out += ValidityText(run, runs.size() == 1 ? "" : FullLabel(run));
  out += runs.size() == 1 ? OneRun(runs[0]) : SeveralRuns(runs);
  for (const RunResult& run : runs) out += Failures(run);
  if (const auto tool = FindCompatTool(compat); tool) out += Compat(runs, **tool);
  return out;
}

}  // namespace vivace::load
