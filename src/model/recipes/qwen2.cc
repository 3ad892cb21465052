// Qwen 2 and 2.5: llama with biases on q, k and v.
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen2.name,
                                         {.qkv_bias = Bias::kNeeded, .bias = Bias::kNone}));
  VIVACE_ASSIGN(d.windows, QwenWindows(d, /*by_depth=*/true));
  return d.Build();
}

constexpr std::string_view kGguf[] = {"qwen2"};
constexpr std::string_view kHf[] = {"Qwen2ForCausalLM"};
constexpr HfKey kKeys[] = {{"attention.full_layers", "max_window_layers"}};

}  // namespace

const Recipe kQwen2 = {"qwen2", kGguf, {kHf, kKeys, {}, kQwenDefaults}, Build};

}  // namespace vivace::model
