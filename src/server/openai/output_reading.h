// How the outputs of a request are told apart. Plain data; its dialect is the served model's, which
// outlives every request.
#pragma once

#include <memory>

#include "text/dialect/dialect.h"
#include "text/dialect/tool_set.h"

namespace vivace::server {

struct OutputReading {
  const Dialect* dialect = nullptr;  // null: all of an output is content
  ReasoningStart reasoning = ReasoningStart::kNone;
  std::shared_ptr<const dialect::ToolSet> tools;  // null: calls are text
  bool include_reasoning = true;                  // false: thoughts are left out of the answer
};

}  // namespace vivace::server
