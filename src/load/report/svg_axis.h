// One axis of a plot: its range, round ticks and their labels, and where a value stands. Pure.
#pragma once

#include <string>
#include <vector>

namespace vivace::load {

// Pixels of a plot's texts; plot_css.cc says the same to browsers.
inline constexpr double kPlotFont = 12, kPlotTitleFont = 13.5;

struct AxisOptions {
  double low = 0, high = 1;  // of the data
  bool log = false;          // only where `low` is above 0
  bool from_zero = false;
  double from_px = 0, to_px = 1;
  int ticks = 5;  // about
};

class Axis {
 public:
  explicit Axis(const AxisOptions& options);

  double At(double value) const;  // pixels; values outside the range stand at its end
  const std::vector<double>& ticks() const { return ticks_; }
  const std::vector<std::string>& labels() const { return labels_; }

 private:
  double Scaled(double value) const;

  bool log_;
  double low_, high_;  // scaled
  double from_px_, to_px_;
  std::vector<double> ticks_;
  std::vector<std::string> labels_;
};

// Labels of one axis: the same unit and the same number of digits.
std::vector<std::string> TickLabels(const std::vector<double>& ticks);

// About how wide a text is, in the fonts that browsers use for a report.
double TextWidth(std::string_view text, double font_px);

// Text shortened to fit a width, with an ellipsis; not yet escaped.
std::string Shortened(std::string_view text, double font_px, double most_px);

}  // namespace vivace::load
