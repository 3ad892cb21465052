#include "load/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "load/report/svg_axis.h"
#include "load/report/svg_text.h"

namespace vivace::load {
namespace {

constexpr double kMarker = 4;
constexpr int kColors = 8;
constexpr const char* kDashes[] = {"", "7 4", "2 3", "9 3 2 3", "5 2", "1 2", "12 4", "4 4 1 4"};

struct Box {
  double left, top, right, bottom;
  bool Meets(const Box& o) const {
    return left < o.right && o.left < right && top < o.bottom && o.top < bottom;
  }
  bool Within(const Box& o) const {
    return left >= o.left && right <= o.right && top >= o.top && bottom <= o.bottom;
  }
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Add(double value, bool log) {
    if (!std::isfinite(value) || (log && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

bool Drawn(const PlotPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

class PlotDrawing : private SvgText {
 public:
  explicit PlotDrawing(const Plot& plot) : plot_(plot) {}

  std::string Draw() {
    for (const PlotSeries& series : plot_.series) {
      for (const PlotPoint& p : series.points) {
        if (!Drawn(p)) continue;
        x_range_.Add(p.x, plot_.log_x);
        y_range_.Add(p.y, plot_.log_y);
      }
    }
    Begin();
    const double legend_bottom = Legend();
    if (x_range_.empty() || y_range_.empty()) {
      Text(plot_.width / 2.0, plot_.height / 2.0, "middle", "muted", "no data");
      return End();
    }
    Frame(legend_bottom);
    for (size_t i = 0; i < plot_.series.size(); ++i) Series(i);
    Labels();
    return End();
  }

 private:
  void Begin() {
    Put("<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", plot_.width,
        plot_.height, EscapeMarkup(plot_.title));
    Text(2, 15, "start", "title", Shortened(plot_.title, kPlotTitleFont, plot_.width - 4));
  }

  int Color(size_t series) const {
    const int own = plot_.series[series].color;
    return (own >= 0 ? own : static_cast<int>(series)) % kColors;
  }

  static bool HasLine(const PlotSeries& s) { return s.kind != PlotSeries::Kind::kPoints; }
  static bool HasPoints(const PlotSeries& s) {
    return s.kind == PlotSeries::Kind::kPoints || s.kind == PlotSeries::Kind::kLineAndPoints;
  }

  // Names of series in rows under the title; returns where they end.
  double Legend() {
    constexpr double kRow = 17, kSwatch = 26, kGap = 20;
    double x = 2, y = 34;
    bool any = false;
    for (size_t i = 0; i < plot_.series.size(); ++i) {
      const PlotSeries& series = plot_.series[i];
      if (series.name.empty()) continue;
      const std::string name = Shortened(series.name, kPlotFont, plot_.width - kSwatch - 8);
      const double width = kSwatch + TextWidth(name, kPlotFont) + kGap;
      if (any && x + width - kGap > plot_.width) x = 2, y += kRow;
      Swatch(i, x, y - 4);
      Text(x + kSwatch, y, "start", "legend", name);
      x += width;
      any = true;
    }
    return any ? y + 4 : 20;
  }

  void Swatch(size_t i, double x, double y) {
    if (HasLine(plot_.series[i])) {
      Put("<path d=\"M{:.1f} {:.1f}h20\" class=\"line c{}\"{}/>\n", x, y, Color(i), Dash(i));
    }
    if (HasPoints(plot_.series[i])) Marker(i, x + 10, y, "");
  }

  std::string Dash(size_t i) const {
    if (plot_.series.size() == 1) return "";  // dashes tell series apart
    const char* dash = kDashes[static_cast<size_t>(Color(i)) % std::size(kDashes)];
    return *dash == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
  }

  void Frame(double top) {
    constexpr double kRight = 16, kBottom = 40;
    const double y_high = plot_.y_max > 0 ? plot_.y_max : y_range_.high;
    const double area_top = top + (plot_.y_label.empty() ? 8 : 24);
    const double area_bottom = plot_.height - kBottom;
    int ticks = std::max(2, static_cast<int>((area_bottom - area_top) / 42));
    y_.push_back(YScale(y_high, area_bottom, area_top, ticks));
    double widest = 0;
    for (const std::string& label : y_[0].labels()) {
      widest = std::max(widest, TextWidth(label, kPlotFont));
    }
    const double left = widest + 12;
    x_.emplace_back(AxisOptions{x_range_.low, x_range_.high, plot_.log_x, plot_.x_from_zero, left,
                                plot_.width - kRight,
                                std::max(2, static_cast<int>((plot_.width - left) / 78))});
    area_ = {left, area_top, plot_.width - kRight, area_bottom};
    YAxis();
    XAxis();
  }

  // Fewer ticks where they would stand between whole numbers that are counts.
  Axis YScale(double high, double bottom, double top, int ticks) const {
    for (;; --ticks) {
      Axis axis({y_range_.low, high, plot_.log_y, plot_.y_from_zero, bottom, top, ticks});
      const bool whole = std::all_of(axis.ticks().begin(), axis.ticks().end(),
                                     [](double tick) { return tick == std::round(tick); });
      if (whole || !plot_.whole_y || ticks <= 1) return axis;
    }
  }

  void YAxis() {
    if (!plot_.y_label.empty()) {
      Text(2, area_.top - 11, "start", "muted",
           Shortened(plot_.y_label, kPlotFont, plot_.width - 4));
    }
    for (size_t i = 0; i < y_[0].ticks().size(); ++i) {
      const double y = y_[0].At(y_[0].ticks()[i]);
      Put("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"{}\"/>\n", area_.left, y, area_.right,
          i == 0 ? "axis" : "grid");
      Text(area_.left - 6, y + 4, "end", "tick", y_[0].labels()[i]);
    }
  }

  void XAxis() {
    double last_right = -1e9;
    for (size_t i = 0; i < x_[0].ticks().size(); ++i) {
      const double x = x_[0].At(x_[0].ticks()[i]);
      const double half = TextWidth(x_[0].labels()[i], kPlotFont) / 2;
      Put("<path d=\"M{:.1f} {:.1f}v4\" class=\"axis\"/>\n", x, area_.bottom);
      if (x - half < last_right + 6) continue;  // a log axis has ticks closer than their labels
      last_right = x + half;
      const bool at_end = x + half > plot_.width;
      Text(at_end ? plot_.width : x, area_.bottom + 17, at_end ? "end" : "middle", "tick",
           x_[0].labels()[i]);
    }
    Text((area_.left + area_.right) / 2, plot_.height - 5, "middle", "muted",
         Shortened(plot_.x_label, kPlotFont, plot_.width - 4));
  }

  void Series(size_t i) {
    const PlotSeries& series = plot_.series[i];
    if (HasLine(series)) Line(i);
    for (const PlotPoint& p : series.points) {
      if (!Drawn(p)) continue;
      if (HasPoints(series)) {
        const std::string title =
            p.title.empty() ? fmt::format("{} {}, {}", p.label, ShortNumber(p.x), ShortNumber(p.y))
                            : p.title;
        Marker(i, x_[0].At(p.x), y_[0].At(p.y), title);
      }
      if (HasPoints(series) || !p.label.empty()) taken_.push_back(Around(p, kMarker));
    }
  }

  Box Around(const PlotPoint& p, double by) const {
    const double x = x_[0].At(p.x), y = y_[0].At(p.y);
    return {x - by, y - by, x + by, y + by};
  }

  void Line(size_t i) {
    const PlotSeries& series = plot_.series[i];
    std::string path;
    bool down = false;
    for (const PlotPoint& p : series.points) {
      if (!Drawn(p)) {
        down = false;
        continue;
      }
      const double x = x_[0].At(p.x), y = y_[0].At(p.y);
      if (down && series.kind == PlotSeries::Kind::kStep) {
        path += fmt::format("H{:.1f}V{:.1f}", x, y);
      } else {
        path += fmt::format("{}{:.1f} {:.1f}", down ? 'L' : 'M', x, y);
      }
      down = true;
    }
    Put("<path d=\"{}\" class=\"line c{}\"{}/>\n", path, Color(i), Dash(i));
  }

  void Marker(size_t i, double x, double y, std::string_view title) {
    const double r = kMarker;
    const auto close = [&](const char* tag) {
      return title.empty() ? std::string("/>\n")
                           : fmt::format("><title>{}</title></{}>\n", EscapeMarkup(title), tag);
    };
    switch (Color(i) % 4) {
      case 0:
        Put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"dot c{}\"{}", x, y, r, Color(i),
            close("circle"));
        break;
      case 1:
        Put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" class=\"dot c{}\"{}",
            x - r + .5, y - r + .5, 2 * r - 1, 2 * r - 1, Color(i), close("rect"));
        break;
      case 2:
        Put("<path d=\"M{:.1f} {:.1f}l{r} {h}h-{h}z\" class=\"dot c{}\"{}", x, y - r, Color(i),
            close("path"), fmt::arg("r", r), fmt::arg("h", 2 * r));
        break;
      default:
        Put("<path d=\"M{:.1f} {:.1f}l{r} {r}l-{r} {r}l-{r} -{r}z\" class=\"dot c{}\"{}", x, y - r,
            Color(i), close("path"), fmt::arg("r", r));
    }
  }

  // Each label at the first of its places that nothing takes, no line if that can be. No place: it
  // is left to the point's title.
  void Labels() {
    for (const PlotSeries& series : plot_.series) {
      if (HasLine(series)) Cover(series);
    }
    for (const PlotSeries& series : plot_.series) {
      for (const PlotPoint& p : series.points) {
        if (p.label.empty() || !Drawn(p)) continue;
        const std::string text = Shortened(p.label, kPlotFont, 200);
        const std::vector<Box> places = Places(p, TextWidth(text, kPlotFont));
        auto place = std::find_if(places.begin(), places.end(),
                                  [&](const Box& box) { return Free(box, /*of_lines=*/true); });
        if (place == places.end()) {
          place = std::find_if(places.begin(), places.end(),
                               [&](const Box& box) { return Free(box, /*of_lines=*/false); });
        }
        if (place == places.end()) continue;
        Text(place->left, place->bottom - 3, "start", "mark", text);
        taken_.push_back(*place);
      }
    }
  }

  // Around a point: beside, over and under it, and at its corners.
  std::vector<Box> Places(const PlotPoint& p, double w) const {
    const double x = x_[0].At(p.x), y = y_[0].At(p.y);
    return {
        {x + 7, y - 7, x + 7 + w, y + 6},      {x + 5, y + 5, x + 5 + w, y + 18},
        {x - 7 - w, y - 7, x - 7, y + 6},      {x - 5 - w, y - 19, x - 5, y - 6},
        {x - w / 2, y + 7, x + w / 2, y + 20}, {x - w / 2, y - 20, x + w / 2, y - 7},
        {x + 5, y - 19, x + 5 + w, y - 6},     {x - 5 - w, y + 5, x - 5, y + 18},
    };
  }

  bool Free(const Box& place, bool of_lines) const {
    const Box page = {0, area_.top - 8, static_cast<double>(plot_.width), area_.bottom};
    const auto meets = [&](const Box& other) { return place.Meets(other); };
    return place.Within(page) && std::none_of(taken_.begin(), taken_.end(), meets) &&
           !(of_lines && std::any_of(lines_.begin(), lines_.end(), meets));
  }

  // Small boxes along a line.
  void Cover(const PlotSeries& series) {
    constexpr double kStep = 5;
    const PlotPoint* last = nullptr;
    for (const PlotPoint& p : series.points) {
      if (!Drawn(p)) continue;
      if (last != nullptr) {
        const double x0 = x_[0].At(last->x), y0 = y_[0].At(last->y);
        const double dx = x_[0].At(p.x) - x0, dy = y_[0].At(p.y) - y0;
        const int steps = static_cast<int>(std::hypot(dx, dy) / kStep) + 1;
        for (int i = 0; i <= steps; ++i) {
          const double x = x0 + dx * i / steps, y = y0 + dy * i / steps;
          lines_.push_back({x - 1, y - 1, x + 1, y + 1});
        }
      }
      last = &p;
    }
  }

  const Plot& plot_;
  Range x_range_, y_range_;
  std::vector<Axis> x_, y_;  // one each, once the data are known
  Box area_{};
  std::vector<Box> taken_, lines_;
};

}  // namespace

std::string SvgPlot(const Plot& plot) { return PlotDrawing(plot).Draw(); }

std::vector<PlotPoint> ThinCurve(std::vector<PlotPoint> points, size_t most) {
  if (points.size() <= most || most < 2) return points;
  std::vector<PlotPoint> thin;
  thin.reserve(most);
  for (size_t i = 0; i < most; ++i) {
    thin.push_back(std::move(points[i * (points.size() - 1) / (most - 1)]));
  }
  return thin;
}

}  // namespace vivace::load
