// The verbs of `vivace bench`; see commands.h for the contract.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vivace::cli {

int BenchLimits(std::span<const std::string> args);
int BenchSteps(std::span<const std::string> args);
int BenchThroughput(std::span<const std::string> args);
int BenchLatency(std::span<const std::string> args);
int BenchServe(std::span<const std::string> args);
int BenchMaxRate(std::span<const std::string> args);
int BenchSimulate(std::span<const std::string> args);
int BenchReport(std::span<const std::string> args);
int BenchCompare(std::span<const std::string> args);

// "1,2,32k" as numbers; "none" as none of them. `field` names the flag in the error.
Result<std::vector<int32_t>> ParseCounts(std::string_view text, std::string_view field);

}  // namespace vivace::cli
