// The flags that say what a benchmark or `vivace tune` sends: a dataset and its lengths, by vLLM's
// names, old and new.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "load/datasets/dataset.h"

namespace vivace::cli {

// `options` holds the defaults, and outlives the flags. `--input-len` and `--random-input-len` are
// one flag, and so on.
std::vector<Flag> DatasetFlags(load::DatasetOptions* options);

// --temperature and --ignore-eos, for runs in process.
std::vector<Flag> OfflineSamplingFlags(float* temperature, bool* ignore_eos);

// Taken for vLLM's sake: offline benchmarks make no text of answers anyway.
Flag DisableDetokenizeFlag();

Flag PromptsFlag(size_t* to, std::string default_text, std::string help);

// The kinds of datasets, a line each, for --help.
std::string DatasetHelp();

}  // namespace vivace::cli
