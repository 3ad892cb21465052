#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "load/report/svg_axis.h"
#include "load/report/svg_plot.h"
#include "load/report/svg_text.h"

namespace vivace::load {
namespace {

constexpr double kCellHeight = 30, kHeatMapTop = 46, kScaleHeight = 34;

class HeatMapDrawing : private SvgText {
 public:
  explicit HeatMapDrawing(const HeatMap& map) : map_(map) {
    for (const std::string& row : map.rows) left_ = std::max(left_, TextWidth(row, kPlotFont) + 12);
    left_ = std::min(left_, map.width / 3.0);
    cell_ = map.columns.empty() ? 1 : (map.width - left_ - 4) / map.columns.size();
    bottom_ = kHeatMapTop + kCellHeight * map.rows.size();
    for (double value : map.values) {
      if (!std::isfinite(value)) continue;
      low_ = std::min(low_, value);
      high_ = std::max(high_, value);
    }
  }

  std::string Draw() {
    Put("<svg class=\"plot\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
        map_.width, bottom_ + 40 + kScaleHeight, EscapeMarkup(map_.title));
    Text(2, 15, "start", "title", Shortened(map_.title, kPlotTitleFont, map_.width - 4));
    Text(2, kHeatMapTop - 10, "start", "muted", map_.y_label);
    for (size_t row = 0; row < map_.rows.size(); ++row) Row(row);
    for (size_t column = 0; column < map_.columns.size(); ++column) {
      Text(left_ + (column + 0.5) * cell_, bottom_ + 16, "middle", "tick",
           Shortened(map_.columns[column], kPlotFont, cell_));
    }
    Text(left_ + (map_.width - left_) / 2, bottom_ + 34, "middle", "muted", map_.x_label);
    for (const auto& [row, column] : map_.marked) Frame(row, column);
    Scale();
    return End();
  }

 private:
  // 0 (bad) to 1 (good).
  double Goodness(double value) const {
    const double share = high_ > low_ ? (value - low_) / (high_ - low_) : 1;
    return map_.high_is_good ? share : 1 - share;
  }
  static double Opacity(double goodness) { return 0.06 + 0.64 * goodness; }

  void Row(size_t row) {
    const double y = kHeatMapTop + row * kCellHeight;
    Text(left_ - 6, y + kCellHeight / 2 + 4, "end", "tick",
         Shortened(map_.rows[row], kPlotFont, left_ - 8));
    for (size_t column = 0; column < map_.columns.size(); ++column) {
      const size_t index = row * map_.columns.size() + column;
      const double x = left_ + column * cell_;
      const bool there = index < map_.values.size() && std::isfinite(map_.values[index]);
      if (!there) {
        Put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"hole\"/>\n",
            x + 1, y + 1, cell_ - 2, kCellHeight - 2);
        continue;
      }
      const double value = map_.values[index];
      const std::string text = index < map_.texts.size() ? map_.texts[index] : ShortNumber(value);
      Put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"heat\" "
          "fill-opacity=\"{:.2f}\"><title>{}</title></rect>\n",
          x + 1, y + 1, cell_ - 2, kCellHeight - 2, Opacity(Goodness(value)),
          EscapeMarkup(fmt::format("{} {}, {} {}: {} {}", map_.y_label, map_.rows[row],
                                   map_.x_label, map_.columns[column], text, map_.value_label)));
      if (TextWidth(text, kPlotFont) < cell_ - 4) {
        Text(x + cell_ / 2, y + kCellHeight / 2 + 4, "middle", "cell", text);
      }
    }
  }

  void Frame(size_t row, size_t column) {
    if (row >= map_.rows.size() || column >= map_.columns.size()) return;
    Put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"winner\"/>\n",
        left_ + column * cell_ + 1, kHeatMapTop + row * kCellHeight + 1, cell_ - 2,
        kCellHeight - 2);
  }

  // The values that the shades stand for.
  void Scale() {
    if (low_ > high_) return;
    constexpr int kSteps = 12;
    constexpr double kStep = 12;
    const double y = bottom_ + 48;
    const double worst = map_.high_is_good ? low_ : high_, best = map_.high_is_good ? high_ : low_;
    const std::string from = ShortNumber(worst);
    double x = left_ + TextWidth(from, kPlotFont) + 6;
    Text(left_, y + 10, "start", "tick", from);
    for (int i = 0; i < kSteps; ++i, x += kStep) {
      Put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"12\" class=\"heat\" "
          "fill-opacity=\"{:.2f}\"/>\n",
          x, y, kStep, Opacity(i / (kSteps - 1.0)));
    }
    Text(x + 6, y + 10, "start", "tick", fmt::format("{} {}", ShortNumber(best), map_.value_label));
  }

  const HeatMap& map_;
  double left_ = 20, cell_ = 1, bottom_ = 0;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

std::string SvgHeatMap(const HeatMap& map) { return HeatMapDrawing(map).Draw(); }

}  // namespace vivace::load
