#include "grammar/schema_formats.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vivace::grammar {
namespace {

// Each matches a part of the format's values that is wide enough for use, and nothing else: days
// that every year has, years of four digits, host names of letters, digits and hyphens.
#define VIVACE_DATE                                                                  \
  "([12][0-9]{3})-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|" \
  "(0[13578]|1[02])-31)"
#define VIVACE_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define VIVACE_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,40}[A-Za-z0-9])?"
#define VIVACE_HOST VIVACE_LABEL "(\\." VIVACE_LABEL "){0,4}"
#define VIVACE_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define VIVACE_PATH "[A-Za-z0-9_.~!$&'()*+,;=:@/?-]{0,1000}"

constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date", VIVACE_DATE},
    {"date-time", VIVACE_DATE "T" VIVACE_TIME},
    {"time", VIVACE_TIME},
    {"duration",
     "P([0-9]{1,6}W|[0-9]{1,6}D(T[0-9]{1,6}(H|M|S))?|T[0-9]{1,6}(H|M|S)|"
     "[0-9]{1,6}Y([0-9]{1,6}M([0-9]{1,6}D)?)?|[0-9]{1,6}M([0-9]{1,6}D)?|"
     "T[0-9]{1,6}H[0-9]{1,6}M([0-9]{1,6}S)?|T[0-9]{1,6}M[0-9]{1,6}S)"},
    {"email", "[A-Za-z0-9_+-]{1,40}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@" VIVACE_LABEL "(\\." VIVACE_LABEL
              "){1,3}"},
    {"hostname", VIVACE_HOST},
    {"ipv4", VIVACE_BYTE "\\." VIVACE_BYTE "\\." VIVACE_BYTE "\\." VIVACE_BYTE},
    {"ipv6", "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"},
    {"uri", "(https?|ftp)://" VIVACE_HOST "(:[1-9][0-9]{0,3})?(/" VIVACE_PATH ")?"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
};

#undef VIVACE_DATE
#undef VIVACE_TIME
#undef VIVACE_LABEL
#undef VIVACE_HOST
#undef VIVACE_BYTE
#undef VIVACE_PATH

constexpr std::string_view kUncheckedFormats[] = {"binary",    "directory-path", "double",
                                                  "file-path", "float",          "multi-line",
                                                  "password",  "path",           "textarea"};

}  // namespace

std::string_view FormatPattern(std::string_view format) {
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern;
  }
  return {};
}

bool FormatIsAnnotation(std::string_view format) {
  return std::ranges::find(kUncheckedFormats, format) != std::end(kUncheckedFormats);
}

std::string EnforcedFormats() {
  std::string names;
  for (const auto& [name, pattern] : kFormats) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

}  // namespace vivace::grammar
