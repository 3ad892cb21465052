// Qwen 3: llama with a norm on each head of q and k.
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen3.name, {.qk_norm = QkNorm::kPerHead}));
  VIVACE_ASSIGN(d.windows, QwenWindows(d, /*by_depth=*/true));
  return d.Build();
}

constexpr std::string_view kGguf[] = {"qwen3"};
constexpr std::string_view kHf[] = {"Qwen3ForCausalLM"};
constexpr HfKey kKeys[] = {{"attention.full_layers", "max_window_layers"}};

}  // namespace

const Recipe kQwen3 = {"qwen3", kGguf, {kHf, kKeys, {}, kQwenDefaults}, Build};

}  // namespace vivace::model
