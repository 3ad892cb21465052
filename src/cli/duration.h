// Times as people write them on a command line: "90s", "10m", "1.5h", or seconds without a unit.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vivace::cli {

// Above 0. `flag` is named in the error.
Result<double> ParseDuration(std::string_view text, const std::string& flag, double most_seconds);

std::string FormatDuration(double seconds);  // "10m", "90s"

}  // namespace vivace::cli
