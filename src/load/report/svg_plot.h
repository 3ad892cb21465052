// Plots as inline SVG: lines, points, steps, and heat maps, with round ticks, a legend and labels
// that do not cover each other. No script: a point's numbers are its <title>.
//
// Colours are CSS classes (kPlotCss): one palette that colour-blind people can tell apart, for
// light and dark pages; series differ in dash and marker as well. All text is escaped. Pure; cost:
// linear in the points, which the caller thins (ThinCurve) where there are many.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vivace::load {

struct PlotPoint {
  double x = 0, y = 0;
  std::string label = {};  // beside the point; empty: none
  std::string title = {};  // shown when pointed at; empty: "x, y"
};

struct PlotSeries {
  enum class Kind { kLine, kPoints, kLineAndPoints, kStep } kind = Kind::kLineAndPoints;
  std::string name = {};  // in the legend; empty: not there
  std::vector<PlotPoint> points = {};
  int color = -1;  // index of the palette; -1: by order
};

struct Plot {
  std::string title = {};                  // above, and what a screen reader says
  std::string x_label = {}, y_label = {};  // with units
  bool log_x = false, log_y = false;
  bool x_from_zero = true, y_from_zero = true;  // on linear axes
  double y_max = 0;                             // 0: by the data
  bool whole_y = false;                         // counts: no ticks between them
  int width = 480, height = 300;
  std::vector<PlotSeries> series = {};
};
std::string SvgPlot(const Plot& plot);

struct HeatMap {
  std::string title = {}, x_label = {}, y_label = {}, value_label = {};
  std::vector<std::string> columns = {}, rows = {};  // names of the cells' places
  std::vector<double> values = {};      // rows x columns, row by row; NaN: nothing there
  std::vector<std::string> texts = {};  // in the cells; empty: the values
  std::vector<std::pair<size_t, size_t>> marked = {};  // (row, column) with a frame: winners
  bool high_is_good = true;                            // dark end of the scale
  int width = 560;
};
std::string SvgHeatMap(const HeatMap& map);

// Style sheet of both, for light and dark (`color-scheme`, `prefers-color-scheme`).
std::string_view PlotCss();

// Text for HTML and SVG, in elements and in quoted attributes; what is not UTF-8 or may not stand
// in XML becomes U+FFFD.
std::string EscapeMarkup(std::string_view text);

// At most `most` of the points of a curve: the first, the last, and those between at equal steps of
// the index.
std::vector<PlotPoint> ThinCurve(std::vector<PlotPoint> points, size_t most);

// Round numbers (1, 2, 2.5 or 5 times a power of ten) that cover [low, high], about `count`.
std::vector<double> RoundTicks(double low, double high, int count);

// "12,300", "0.25", "1.5k" for axes: short, and the same digits for one axis where it matters.
std::string ShortNumber(double value);

}  // namespace vivace::load
