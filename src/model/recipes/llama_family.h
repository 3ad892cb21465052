// What llama, mistral and mixtral share: GGUF files of all three call themselves "llama".
#pragma once

#include "model/decoder.h"

namespace vivace::model {

// Experts and a sliding window are options of the file.
Result<ModelSpec> BuildLlamaFamily(const ModelSource& source, std::string_view recipe,
                                   FamilyTraits traits = {});

}  // namespace vivace::model
