// Qwen 2 with experts: beside the chosen ones a shared one, scaled by a gate of its own. The chosen
// ones' weights are taken as the softmax of all has them.
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen2Moe.name, {.bias = Bias::kNone}));
  VIVACE_ASSIGN(d.windows, QwenWindows(d, /*by_depth=*/false));
  VIVACE_ASSIGN(const std::vector<bool> dense, QwenDenseLayers(d));
  VIVACE_ASSIGN(const QwenExperts experts, ReadQwenExperts(d));
  d.has_dense_mlp = [&](int64_t i) { return dense[static_cast<size_t>(i)]; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (dense[static_cast<size_t>(i)]) return {};
    VIVACE_ASSIGN(layer->mlp.moe, QwenSharedMoe(d, i, experts, {}));
    return {};
  });
}

constexpr std::string_view kGguf[] = {"qwen2moe"};
constexpr std::string_view kHf[] = {"Qwen2MoeForCausalLM"};
constexpr HfKey kKeys[] = {{"attention.bias", "qkv_bias"}};

}  // namespace

const Recipe kQwen2Moe = {"qwen2_moe", kGguf, {kHf, kKeys}, Build};

}  // namespace vivace::model
