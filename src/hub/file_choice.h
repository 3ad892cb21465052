// Which files of a repository make a model, by their names alone. Pure; linear but for a sort.
//
//   org/name            safetensors with config.json, if the repository has them: the weights, the
//                       index, and the small files beside them. Else a GGUF, the first that is
//                       there of kGgufPreference; else the only one; else the caller is asked.
//   org/name:FILE       that file, with the other parts of a split GGUF
//   org/name:Q4_K_M     the GGUF with that word at a boundary of its name, whatever the case
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_name.h"

namespace vivace::hub {

// Small and good first, then exact.
inline constexpr std::array<std::string_view, 9> kGgufPreference = {
    "Q4_K_M", "Q4_K_S", "Q4_0", "Q4_1", "Q5_K_M", "Q5_0", "Q6_K", "Q8_0", "BF16"};

struct Choice {
  std::vector<std::string> files;  // in the order to get them: the small ones before the weights
  std::string model;  // the one to open: a GGUF, its first part, or what was asked for;
                      // empty: the folder
};

// `names` of all files there are. Reasons: no_such_file, no_model_files, several_models (the
// sentence lists them), missing_parts.
Result<Choice> ChooseFiles(std::span<const std::string> names, const ModelName& wanted);

// Every complete model among `names`: the folder of safetensors first, then each GGUF.
std::vector<Choice> AllModels(std::span<const std::string> names);

}  // namespace vivace::hub
