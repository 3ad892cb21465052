// The style sheet of the HTML report, beside the plots' own (PlotCss).
#pragma once

#include <string_view>

namespace vivace::load {

std::string_view HtmlCss();

}  // namespace vivace::load
