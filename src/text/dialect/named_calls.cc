#include "text/dialect/named_calls.h"

#include <algorithm>

#include "base/limits.h"
#include "text/dialect/json_text.h"

namespace vivace::dialect {

std::string_view NamedCall::Name() const {
  std::string_view name = header_;
  if (!rule_.after.empty()) {
    const size_t found = name.rfind(rule_.after);
    if (found != std::string_view::npos) name.remove_prefix(found + rule_.after.size());
  }
  for (const std::string_view mark : rule_.before) {
    if (!mark.empty()) name = name.substr(0, std::min(name.find(mark), name.size()));
  }
  return TrimSpace(name);
}

CallReader::Step NamedCall::Take(char c, PieceSink* sink) {
  if (!in_call_) {
    if (c != '{') {
      header_ += c;
      return header_.size() <= limits::kMaxCallHeaderBytes ? Step::kMore : Step::kBad;
    }
    const std::string_view name = Name();
    if (!IsCallName(name)) return Step::kBad;
    sink->BeginCall(std::string(name));
    in_call_ = true;
  }
  const JsonScanner::Step step = scanner_.Take(c);
  if (step == JsonScanner::Step::kBad) return Step::kBad;
  sink->Arguments({&c, 1});
  if (step != JsonScanner::Step::kDone) return Step::kMore;
  in_call_ = false;
  return Step::kDone;
}

}  // namespace vivace::dialect
