#include "server/metrics/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace vivace::server {
namespace {

void AppendEscaped(std::string_view text, bool quotes, std::string* out) {
  for (const char c : text) {
    if (c == '\\') {
      *out += "\\\\";
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '"' && quotes) {
      *out += "\\\"";
    } else {
      out->push_back(c);
    }
  }
}

std::string RenderLabels(const Labels& common, const Labels& own) {
  std::string out;
  for (const Labels* labels : {&common, &own}) {
    for (const auto& [name, value] : *labels) {
      if (!out.empty()) out.push_back(',');
      out += name;
      out += "=\"";
      AppendEscaped(value, true, &out);
      out.push_back('"');
    }
  }
  return out;
}

void AppendSample(std::string_view name, std::string_view suffix, std::string_view labels,
                  std::string_view extra_label, const std::string& value, std::string* out) {
  *out += name;
  *out += suffix;
  if (!labels.empty() || !extra_label.empty()) {
    out->push_back('{');
    *out += labels;
    if (!labels.empty() && !extra_label.empty()) out->push_back(',');
    *out += extra_label;
    out->push_back('}');
  }
  out->push_back(' ');
  *out += value;
  out->push_back('\n');
}

}  // namespace

void Counter::Mirror(int64_t total) {
  int64_t seen = value_.load(std::memory_order_relaxed);
  while (seen < total && !value_.compare_exchange_weak(seen, total, std::memory_order_relaxed)) {
  }
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), buckets_(new std::atomic<int64_t>[bounds.size() + 1]()) {
  VIVACE_CHECK(std::is_sorted(bounds.begin(), bounds.end()));
}

void Histogram::Observe(double value) { Observe(value, 1); }

void Histogram::Observe(double value, int64_t times) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  buckets_[static_cast<size_t>(bound - bounds_.begin())].fetch_add(times,
                                                                   std::memory_order_relaxed);
  sum_.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

void Histogram::Mirror(std::span<const int64_t> buckets, double sum) {
  VIVACE_CHECK(buckets.size() == bounds_.size() + 1);
  for (size_t i = 0; i < buckets.size(); ++i) {
    buckets_[i].store(buckets[i], std::memory_order_relaxed);
  }
  sum_.store(sum, std::memory_order_relaxed);
}

MetricsRegistry::Series* MetricsRegistry::AddSeries(std::string_view name, std::string_view help,
                                                    Kind kind, const Labels& labels) {
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&](const Family& f) { return f.name == name; });
  if (family == families_.end()) {
    families_.push_back({std::string(name), std::string(help), kind, {}});
    family = std::prev(families_.end());
  }
  VIVACE_CHECK(family->kind == kind);
  family->series.push_back({RenderLabels(common_, labels), nullptr, nullptr, nullptr});
  return &family->series.back();
}

Counter* MetricsRegistry::AddCounter(std::string_view name, std::string_view help, Labels labels) {
  VIVACE_CHECK(name.ends_with("_total"));
  Counter* counter = &counters_.emplace_back();
  AddSeries(name, help, Kind::kCounter, labels)->counter = counter;
  return counter;
}

Gauge* MetricsRegistry::AddGauge(std::string_view name, std::string_view help, Labels labels) {
  Gauge* gauge = &gauges_.emplace_back();
  AddSeries(name, help, Kind::kGauge, labels)->gauge = gauge;
  return gauge;
}

Histogram* MetricsRegistry::AddHistogram(std::string_view name, std::string_view help,
                                         std::span<const double> bounds, Labels labels) {
  Histogram* histogram = &histograms_.emplace_back(bounds);
  AddSeries(name, help, Kind::kHistogram, labels)->histogram = histogram;
  return histogram;
}

// The count is the sum of the buckets read here, so that +Inf and _count always agree.
void MetricsRegistry::RenderHistogram(const Family& family, const Series& series,
                                      std::string* out) {
  const Histogram& histogram = *series.histogram;
  const size_t n = histogram.bounds_.size();
  int64_t count = 0;
  for (size_t i = 0; i <= n; ++i) {
    count += histogram.buckets_[i].load(std::memory_order_relaxed);
    const std::string le = i < n ? fmt::format("le=\"{}\"", histogram.bounds_[i]) : "le=\"+Inf\"";
    AppendSample(family.name, "_bucket", series.labels, le, fmt::format("{}", count), out);
  }
  AppendSample(family.name, "_sum", series.labels, "",
               fmt::format("{}", histogram.sum_.load(std::memory_order_relaxed)), out);
  AppendSample(family.name, "_count", series.labels, "", fmt::format("{}", count), out);
}

std::string MetricsRegistry::Render() const {
  std::string out;
  for (const Family& family : families_) {
    out += fmt::format("# HELP {} ", family.name);
    AppendEscaped(family.help, false, &out);
    static constexpr const char* kKindNames[] = {"counter", "gauge", "histogram"};
    out +=
        fmt::format("\n# TYPE {} {}\n", family.name, kKindNames[static_cast<size_t>(family.kind)]);
    for (const Series& series : family.series) {
      if (series.histogram != nullptr) {
        RenderHistogram(family, series, &out);
        continue;
      }
      const std::string value = series.counter != nullptr
                                    ? fmt::format("{}", series.counter->value())
                                    : fmt::format("{}", series.gauge->value());
      AppendSample(family.name, "", series.labels, "", value, &out);
    }
  }
  return out;
}

}  // namespace vivace::server
