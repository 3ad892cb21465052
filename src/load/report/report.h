// What was measured, for people and for programs. Each report says first whether the run counts
// (validity.h). Pure functions over what a run left; any thread. Everything that came from outside
// (model names, error messages) is escaped for its format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/run_result.h"

namespace vivace::load {

// One run: a block in the style of vLLM's; several: a row each. `compat` names a tool of compat.h
// whose columns are printed as well; empty: none.
std::string TerminalTable(const std::vector<RunResult>& runs, std::string_view compat);

// One run: a flat object with vLLM's field names; several: {"runs": [...]}. Never NaN: null.
// `detailed`: the records too (ttfts, itls, ..., and "requests", which ReadReport turns back into
// records), without which `compare` has no intervals. No newline at the end.
// `search`: a JSON object; it becomes the member "search" of {"runs": [...]}. Empty: none.
std::string ReportJson(const std::vector<RunResult>& runs, bool detailed,
                       std::string_view search = "");

std::string ReportCsv(const std::vector<RunResult>& runs);  // a header, then a row per run

// One file that needs nothing from elsewhere and runs no script.
std::string ReportHtml(const std::vector<RunResult>& runs);

// What ReportJson wrote, or a result file of `vllm bench serve`, as far as that goes. Errors name
// the file and what is wrong with it.
Result<std::vector<RunResult>> ReadReport(const std::string& path);
Result<std::vector<RunResult>> ParseReport(std::string_view text, const std::string& name);

}  // namespace vivace::load
