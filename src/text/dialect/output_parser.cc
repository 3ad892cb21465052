#include "text/dialect/output_parser.h"

#include <utility>

#include "text/dialect/harmony_parser.h"
#include "text/dialect/tagged_parser.h"

namespace vivace {

std::unique_ptr<OutputParser> OutputParser::New(const Dialect& dialect, ReasoningStart start,
                                                std::shared_ptr<const dialect::ToolSet> tools) {
  if (dialect.tools->shape == dialect::CallShape::kHarmony) {
    return std::make_unique<dialect::HarmonyParser>(tools != nullptr);
  }
  return std::make_unique<dialect::TaggedParser>(dialect, start, std::move(tools));
}

}  // namespace vivace
