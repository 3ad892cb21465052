#include <limits>
#include <utility>

#include "base/limits.h"
#include "base/units.h"
#include "cli/bench_commands.h"

namespace vivace::cli {

Result<std::vector<int32_t>> ParseCounts(std::string_view text, std::string_view field) {
  std::vector<int32_t> counts;
  if (text == "none") return counts;
  while (true) {
    const size_t comma = text.find(',');
    VIVACE_ASSIGN(const int64_t count, ParseCount(text.substr(0, comma), field));
    if (count < 1 || std::cmp_greater(count, std::numeric_limits<int32_t>::max()) ||
        counts.size() == limits::kMaxBenchCases) {
      return Fail(ErrorCode::kInvalidArgument, "bad_value", std::string(field),
                  "--{} takes at most {} numbers from 1 on, such as 1,8,64, or none", field,
                  limits::kMaxBenchCases);
    }
    counts.push_back(static_cast<int32_t>(count));
    if (comma == std::string_view::npos) return counts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace vivace::cli
