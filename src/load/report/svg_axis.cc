#include "load/report/svg_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "load/report/svg_plot.h"

namespace vivace::load {
namespace {

constexpr int kMostTicks = 64;

// The round step nearest above: 1, 2, 2.5 or 5 times a power of ten.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (double mantissa : {1.0, 2.0, 2.5, 5.0}) {
    if (mantissa * power >= step * (1 - 1e-9)) return mantissa * power;
  }
  return 10 * power;
}

// 1, 2 and 5 times powers of ten around the range; powers alone where there are many.
std::vector<double> LogTicks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const bool dense = last - first <= 3;
  std::vector<double> ticks;
  for (int power = first; power <= last && ticks.size() < kMostTicks; ++power) {
    for (double mantissa : {1.0, 2.0, 5.0}) {
      if (mantissa > 1 && !dense) continue;
      ticks.push_back(mantissa * std::pow(10, power));
    }
  }
  while (ticks.size() > 2 && ticks[1] <= low) ticks.erase(ticks.begin());
  while (ticks.size() > 2 && ticks[ticks.size() - 2] >= high) ticks.pop_back();
  return ticks;
}

std::string WithoutTrailingZeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

struct Unit {
  double size;
  const char* name;
};
constexpr Unit kUnits[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};

}  // namespace

std::vector<double> RoundTicks(double low, double high, int count) {
  if (!std::isfinite(low) || !std::isfinite(high)) low = 0, high = 1;
  if (!(high > low)) high = low + std::max(std::abs(low), 1.0);
  const double step = RoundStep((high - low) / std::max(count, 1));
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double k = first; k <= last && ticks.size() < kMostTicks; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<std::string> TickLabels(const std::vector<double>& ticks) {
  constexpr int kMostDecimals = 6;
  double largest = 0;
  for (double tick : ticks) largest = std::max(largest, std::abs(tick));
  Unit unit{1, ""};
  for (const Unit& u : kUnits) {
    if (unit.size == 1 && largest >= u.size * (u.size == 1e3 ? 10 : 1)) unit = u;
  }
  int decimals = 0;
  for (; decimals < kMostDecimals; ++decimals) {
    const double scale = std::pow(10, decimals) / unit.size;
    const bool exact = std::all_of(ticks.begin(), ticks.end(), [&](double tick) {
      return std::abs(std::round(tick * scale) - tick * scale) < 1e-6;
    });
    if (exact) break;
  }
  std::vector<std::string> labels;
  for (double tick : ticks) {
    labels.push_back(tick == 0 ? "0"
                               : fmt::format("{:.{}f}{}", tick / unit.size, decimals, unit.name));
  }
  return labels;
}

std::string ShortNumber(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  for (const Unit& unit : kUnits) {
    if (size >= unit.size * (unit.size == 1e3 ? 10 : 1)) {
      return WithoutTrailingZeros(
                 fmt::format("{:.{}f}", value / unit.size, size / unit.size < 100 ? 1 : 0)) +
             unit.name;
    }
  }
  if (size == 0) return "0";
  const int decimals =
      std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, size < 1 ? 6 : 2);
  return WithoutTrailingZeros(fmt::format("{:.{}f}", value, decimals));
}

double TextWidth(std::string_view text, double font_px) {
  double width = 0;
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded d = utf8::Decode(text, pos);
    const bool narrow = std::string_view("iljtf.,:;'|!()[] ").find(text[pos]) != text.npos;
    const bool wide = d.code_point >= 0x2E80 || text[pos] == 'm' || text[pos] == 'w' ||
                      (text[pos] >= 'A' && text[pos] <= 'Z');
    width += d.code_point >= 0x2E80 ? 1 : narrow ? 0.32 : wide ? 0.74 : 0.57;
    pos += d.length;
  }
  return width * font_px;
}

std::string Shortened(std::string_view text, double font_px, double most_px) {
  if (TextWidth(text, font_px) <= most_px) return std::string(text);
  size_t end = 0;
  while (end < text.size()) {
    const size_t next = end + utf8::Decode(text, end).length;
    if (TextWidth(text.substr(0, next), font_px) + font_px > most_px) break;
    end = next;
  }
  return std::string(text.substr(0, end)) + "…";
}

Axis::Axis(const AxisOptions& options)
    : log_(options.log && options.low > 0 && options.high > 0),
      from_px_(options.from_px),
      to_px_(options.to_px) {
  const double low = options.from_zero && !log_ ? std::min(0.0, options.low) : options.low;
  ticks_ = log_ ? LogTicks(low, std::max(options.high, low))
                : RoundTicks(low, options.high, options.ticks);
  labels_ = TickLabels(ticks_);
  if (log_) {  // labels of a long log axis differ in size too much for one unit
    for (size_t i = 0; i < ticks_.size(); ++i) labels_[i] = ShortNumber(ticks_[i]);
  }
  low_ = Scaled(ticks_.front());
  high_ = Scaled(ticks_.back());
}

double Axis::Scaled(double value) const {
  return log_ ? std::log10(std::max(value, 1e-300)) : value;
}

double Axis::At(double value) const {
  const double share = high_ > low_ ? (Scaled(value) - low_) / (high_ - low_) : 0;
  return from_px_ + std::clamp(share, 0.0, 1.0) * (to_px_ - from_px_);
}

}  // namespace vivace::load
