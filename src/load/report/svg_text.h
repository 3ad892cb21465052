// The text of an SVG drawing while it is drawn. Pure.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "load/report/svg_plot.h"

namespace vivace::load {

class SvgText {
 public:
  template <typename... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  // `anchor` and `style`: text-anchor and a class of PlotCss; `text` is escaped.
  void Text(double x, double y, std::string_view anchor, std::string_view style,
            std::string_view text) {
    Put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor,
        style, EscapeMarkup(text));
  }
  // Takes the drawing.
  std::string End() { return std::move(out_) + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace vivace::load
