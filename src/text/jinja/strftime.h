// strftime in English whatever the locale, for strftime_now. Unknown directives stay as written.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace vivace::jinja {

std::string FormatTime(std::string_view format, const std::tm& time);

}  // namespace vivace::jinja
