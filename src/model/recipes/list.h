// Every recipe, one line each. A new family is a file here and a line below.
#pragma once

#include "model/recipe.h"

#define VIVACE_RECIPES(X) \
  X(kLlama)               \
  X(kMistral)             \
  X(kMixtral)             \
  X(kQwen2)               \
  X(kQwen3)               \
  X(kQwen2Moe)            \
  X(kQwen3Moe)            \
  X(kGemma2)              \
  X(kGemma3)              \
  X(kPhi3)                \
  X(kDeepseekV2)          \
  X(kDeepseekV3)          \
  X(kGptOss)              \
  X(kOlmo2)               \
  X(kGranite)             \
  X(kSmolLm3)             \
  X(kGlm4)                \
  X(kExaone4)             \
  X(kStarcoder2)          \
  X(kCohere2)             \
  X(kStableLm)            \
  X(kQwen3Next)           \
  X(kGraniteHybrid)       \
  X(kLfm2)

namespace vivace::model {

#define VIVACE_DECLARE_RECIPE(name) extern const Recipe name;
VIVACE_RECIPES(VIVACE_DECLARE_RECIPE)
#undef VIVACE_DECLARE_RECIPE

}  // namespace vivace::model
