// Counters, gauges and histograms, rendered as Prometheus text format 0.0.4.
//
// Families and label values are fixed when added, before the first scrape: what a client sends can
// never make a new series. Updating is one or two relaxed atomic adds, from any thread; rendering
// runs beside it. Metrics live as long as their registry.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vivace::server {

class Counter {
 public:
  void Add(int64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  // Mirrors a total that is counted elsewhere; never goes back.
  void Mirror(int64_t total);
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0.0};
};

class Histogram {
 public:
  // `bounds`: upper bounds, ascending, static storage; +Inf is added.
  explicit Histogram(std::span<const double> bounds);
  void Observe(double value);
  // Several equal observations at once.
  void Observe(double value, int64_t times);
  // Mirrors a histogram that is kept elsewhere: one count per bucket, +Inf included, and their sum.
  void Mirror(std::span<const int64_t> buckets, double sum);

 private:
  friend class MetricsRegistry;
  std::span<const double> bounds_;
  std::unique_ptr<std::atomic<int64_t>[]> buckets_;  // [bounds + 1], not cumulative
  std::atomic<double> sum_{0.0};
};

using Labels = std::vector<std::pair<std::string, std::string>>;

class MetricsRegistry {
 public:
  // `common` labels go on every sample.
  explicit MetricsRegistry(Labels common) : common_(std::move(common)) {}

  // A counter's name ends in _total. Series of one name share its help and are added one by one.
  Counter* AddCounter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge* AddGauge(std::string_view name, std::string_view help, Labels labels = {});
  Histogram* AddHistogram(std::string_view name, std::string_view help,
                          std::span<const double> bounds, Labels labels = {});

  std::string Render() const;

 private:
  enum class Kind : uint8_t { kCounter, kGauge, kHistogram };
  struct Series {
    std::string labels;  // rendered, without braces
    const Counter* counter = nullptr;
    const Gauge* gauge = nullptr;
    const Histogram* histogram = nullptr;
  };
  struct Family {
    std::string name;
    std::string help;
    Kind kind;
    std::vector<Series> series;
  };

  Series* AddSeries(std::string_view name, std::string_view help, Kind kind, const Labels& labels);
  static void RenderHistogram(const Family& family, const Series& series, std::string* out);

  Labels common_;
  std::deque<Counter> counters_;
  std::deque<Gauge> gauges_;
  std::deque<Histogram> histograms_;
  std::vector<Family> families_;
};

}  // namespace vivace::server
