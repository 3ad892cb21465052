// The pre-tokenisers that GGUF names (tokenizer.ggml.pre), as the Hugging Face files of the same
// models have them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/normalizer.h"
#include "text/word_cutter.h"

namespace vivace {

// What a name implies.
struct PretokenizerFamily {
  std::vector<CutterStep> cutter;
  std::vector<NormalizerStep> normalizer;
  bool ignore_merges = false;
  bool add_bos = false;  // when tokenizer.ggml.add_bos_token is not there
  bool may_prefix_space =
      false;  // tokenizer.ggml.add_space_prefix counts; others carry stray values
};

// Nothing for a name that is not known. An error only if a pattern of ours does not compile.
Result<std::optional<PretokenizerFamily>> PretokenizerFamilyByName(std::string_view name);

}  // namespace vivace
