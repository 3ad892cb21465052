#include "text/jinja/strftime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vivace::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

template <size_t kSize>
std::string_view Name(const std::array<std::string_view, kSize>& names, int index) {
  return names[static_cast<size_t>(std::clamp<int>(index, 0, kSize - 1))];
}

// A number of `width` digits; `pad` 0 drops leading ones (the glibc flag "-").
std::string Number(int value, int width, char pad) {
  if (pad == 0) return fmt::format("{}", value);
  return pad == ' ' ? fmt::format("{:{}}", value, width) : fmt::format("{:0{}}", value, width);
}

std::string Directive(char c, const std::tm& t, char pad) {
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  switch (c) {
    case 'a':
      return std::string(Name(kDays, t.tm_wday).substr(0, 3));
    case 'A':
      return std::string(Name(kDays, t.tm_wday));
    case 'b':
    case 'h':
      return std::string(Name(kMonths, t.tm_mon).substr(0, 3));
    case 'B':
      return std::string(Name(kMonths, t.tm_mon));
    case 'd':
      return Number(t.tm_mday, 2, pad);
    case 'e':
      return Number(t.tm_mday, 2, pad == '0' ? ' ' : pad);
    case 'm':
      return Number(t.tm_mon + 1, 2, pad);
    case 'y':
      return Number((t.tm_year + 1900) % 100, 2, pad);
    case 'Y':
      return Number(t.tm_year + 1900, 1, pad);
    case 'H':
      return Number(t.tm_hour, 2, pad);
    case 'I':
      return Number(hour12, 2, pad);
    case 'M':
      return Number(t.tm_min, 2, pad);
    case 'S':
      return Number(t.tm_sec, 2, pad);
    case 'j':
      return Number(t.tm_yday + 1, 3, pad);
    case 'w':
      return Number(t.tm_wday, 1, pad);
    case 'u':
      return Number(t.tm_wday == 0 ? 7 : t.tm_wday, 1, pad);
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'f':
      return "000000";
    case 'z':
    case 'Z':
      return "";  // a naive time has no zone
    case 'F':
      return FormatTime("%Y-%m-%d", t);
    case 'T':
    case 'X':
      return FormatTime("%H:%M:%S", t);
    case 'R':
      return FormatTime("%H:%M", t);
    case 'D':
    case 'x':
      return FormatTime("%m/%d/%y", t);
    case 'c':
      return FormatTime("%a %b %e %H:%M:%S %Y", t);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return std::string("%") + c;
  }
}

}  // namespace

std::string FormatTime(std::string_view format, const std::tm& time) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    const bool bare = format[i + 1] == '-' && i + 2 < format.size();
    i += bare ? 2 : 1;
    out += Directive(format[i], time, bare ? '\0' : '0');
  }
  return out;
}

}  // namespace vivace::jinja
