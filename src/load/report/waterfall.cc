#include "load/report/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "load/report/svg_axis.h"
#include "load/report/svg_plot.h"
#include "load/report/text.h"

namespace vivace::load {
namespace {

constexpr int kWidth = 900;
constexpr double kWaterfallTop = 48, kMostBar = 14, kLeastBar = 3, kRows = 620;
constexpr size_t kMostStalls = 40;  // drawn of one request: the longest

struct Part {
  std::string_view name, style;
};
constexpr Part kParts[] = {{"queued in the client", "queued"},
                           {"to the first token", "prefill"},
                           {"streaming", "decode"},
                           {"stall (over 3 median gaps)", "stall"},
                           {"failed", "broken"}};

std::vector<const RequestRecord*> Chosen(const RunResult& run, size_t most) {
  std::vector<const RequestRecord*> all;
  for (const RequestRecord& r : run.records) {
    if (r.ended_ns != 0) all.push_back(&r);
  }
  std::stable_sort(all.begin(), all.end(), [](const RequestRecord* a, const RequestRecord* b) {
    return a->scheduled_ns < b->scheduled_ns;
  });
  if (all.size() <= most) return all;
  std::vector<const RequestRecord*> some;
  for (size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return some;
}

// The median of gaps between chunks: stalls are seen per chunk whatever ITL counts.
double MedianGapNs(const std::vector<const RequestRecord*>& records) {
  std::vector<double> gaps;
  for (const RequestRecord* r : records) {
    for (size_t i = 1; i < r->chunk_ns.size(); ++i) {
      gaps.push_back(static_cast<double>(r->chunk_ns[i] - r->chunk_ns[i - 1]));
    }
  }
  std::sort(gaps.begin(), gaps.end());
  return Percentile(gaps, 50);
}

class WaterfallDrawing {
 public:
  WaterfallDrawing(std::vector<const RequestRecord*> records, size_t all)
      : records_(std::move(records)),
        all_(all),
        stall_ns_(kStallFactor * MedianGapNs(records_)),
        row_(std::clamp(kRows / records_.size(), kLeastBar, kMostBar)),
        bottom_(kWaterfallTop + row_ * records_.size()),
        origin_(records_[0]->scheduled_ns),
        x_({.low = 0,
            .high = Length(),
            .log = false,
            .from_zero = true,
            .from_px = 4,
            .to_px = kWidth - 20.0,
            .ticks = 9}) {}

  std::string Draw() {
    Put("<svg class=\"plot waterfall\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" "
        "aria-label=\"Requests over time\">\n",
        kWidth, bottom_ + 42);
    const std::string title =
        records_.size() == all_
            ? fmt::format("Requests over time: all {}", all_)
            : fmt::format("Requests over time: {} of {}, evenly chosen", records_.size(), all_);
    Put("<text x=\"2\" y=\"15\" class=\"title\">{}</text>\n", title);
    Legend();
    Axes();
    for (size_t i = 0; i < records_.size(); ++i) Row(*records_[i], kWaterfallTop + i * row_);
    return out_ + "</svg>\n";
  }

 private:
  template <typename... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  double Length() const {
    int64_t end = origin_ + 1;
    for (const RequestRecord* r : records_) end = std::max(end, r->ended_ns);
    return static_cast<double>(end - origin_) / 1e9;
  }
  double X(int64_t ns) const { return x_.At(static_cast<double>(ns - origin_) / 1e9); }

  void Legend() {
    double x = 2;
    for (const Part& part : kParts) {
      Put("<rect x=\"{:.1f}\" y=\"25\" width=\"14\" height=\"10\" class=\"{}\"/>"
          "<text x=\"{:.1f}\" y=\"34\" class=\"legend\">{}</text>\n",
          x, part.style, x + 19, part.name);
      x += 19 + TextWidth(part.name, kPlotFont) + 18;
    }
  }

  void Axes() {
    for (size_t i = 0; i < x_.ticks().size(); ++i) {
      const double x = x_.At(x_.ticks()[i]);
      Put("<path d=\"M{:.1f} {:.1f}V{:.1f}\" class=\"grid\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"tick\">{}</text>\n",
          x, kWaterfallTop, bottom_, x, bottom_ + 17, x_.labels()[i]);
    }
    Put("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"muted\">seconds after the "
        "start</text>\n",
        kWidth / 2, bottom_ + 36);
  }

  void Bar(int64_t from, int64_t to, double y, std::string_view style, double least = 0) {
    if (to <= from && least == 0) return;
    const double x = X(from);
    Put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>", x,
        y + row_ * 0.1, std::max(X(to) - x, least), row_ * 0.8, style);
  }

  void Row(const RequestRecord& r, double y) {
    Put("<g><title>{}</title>", EscapeMarkup(Title(r)));
    Bar(r.scheduled_ns, r.sent_ns, y, "queued");
    const bool good = r.outcome == Outcome::kCompleted;
    const int64_t sent = r.sent_ns != 0 ? r.sent_ns : r.scheduled_ns;
    if (r.first_ns != 0) {
      Bar(sent, r.first_ns, y, "prefill");
      Bar(r.first_ns, r.last_ns, y, "decode", 1);
      Stalls(r, y);
    }
    if (!good) Bar(r.first_ns != 0 ? r.last_ns : sent, r.ended_ns, y, "broken", 6);
    Put("</g>\n");
  }

  void Stalls(const RequestRecord& r, double y) {
    std::vector<size_t> stalls;
    for (size_t i = 1; i < r.chunk_ns.size(); ++i) {
      if (stall_ns_ > 0 && Gap(r, i) > stall_ns_) stalls.push_back(i);
    }
    if (stalls.size() > kMostStalls) {
      std::nth_element(stalls.begin(), stalls.begin() + kMostStalls, stalls.end(),
                       [&](size_t a, size_t b) { return Gap(r, a) > Gap(r, b); });
      stalls.resize(kMostStalls);
    }
    for (size_t i : stalls) Bar(r.chunk_ns[i - 1], r.chunk_ns[i], y, "stall", 0.8);
  }

  static double Gap(const RequestRecord& r, size_t i) {
    return static_cast<double>(r.chunk_ns[i] - r.chunk_ns[i - 1]);
  }

  static std::string Title(const RequestRecord& r) {
    const RequestTimes t = TimesOf(r);
    std::string out =
        fmt::format("request {}: {} in, {} out", r.index, r.prompt_tokens, r.output_tokens);
    if (t.queue_ms >= 0.05) out += fmt::format(", queued {} ms", Figure(t.queue_ms));
    if (t.ttft_ms >= 0) {
      out += fmt::format(", TTFT {} ms, E2EL {} ms", Figure(t.ttft_ms), Figure(t.e2el_ms));
    }
    if (r.outcome != Outcome::kCompleted) {
      out += fmt::format("; {}: {}", Name(r.outcome), Printable(r.reason));
    }
    return out;
  }

  std::vector<const RequestRecord*> records_;
  size_t all_;
  double stall_ns_, row_, bottom_;
  int64_t origin_;
  Axis x_;
  std::string out_;
};

}  // namespace

std::string SvgWaterfall(const RunResult& run, size_t most) {
  std::vector<const RequestRecord*> records = Chosen(run, most);
  if (records.empty()) return {};
  const auto ended = std::count_if(run.records.begin(), run.records.end(),
                                   [](const RequestRecord& r) { return r.ended_ns != 0; });
  return WaterfallDrawing(std::move(records), static_cast<size_t>(ended)).Draw();
}

}  // namespace vivace::load
