// The same records by other tools' definitions: one name, another number, is why two tools'
// reports of one server do not agree (docs/benchmarking-reports.md).
//
// Tables of data: a column is the tool's own name for it and a formula over a run. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/run_result.h"

namespace vivace::load {

struct CompatColumn {
  std::string name;  // as the tool prints or saves it
  double value = 0;  // NaN: the tool would have none
  std::string_view definition;
};

struct CompatTool {
  std::string_view name;   // of --compat
  std::string_view about;  // version whose definitions these are, and what differs from ours
  std::vector<CompatColumn> (*columns)(const RunResult& run);
};

std::span<const CompatTool> CompatTools();

// Null with the names there are in the error.
Result<const CompatTool*> FindCompatTool(std::string_view name);

}  // namespace vivace::load
