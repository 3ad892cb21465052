// The flags that say what an offline benchmark or `vivace tune` computes: a dataset and its
// lengths, by vLLM's names.
#pragma once

#include <span>
#include <vector>

#include "cli/flags.h"
#include "load/datasets/dataset.h"

namespace vivace::cli {

// `options` holds the defaults. `--input-len` and `--random-input-len` are one flag, and so on.
std::vector<Flag> DatasetFlags(load::DatasetOptions* options);

// The kinds of datasets, a line each, for --help.
std::string DatasetHelp();

}  // namespace vivace::cli
