// Qwen 3 with experts.
#include "base/limits.h"
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen3Moe.name, {.qk_norm = QkNorm::kPerHead}));
  VIVACE_ASSIGN(d.windows, QwenWindows(d, /*by_depth=*/false));
  VIVACE_ASSIGN(const std::vector<bool> dense, QwenDenseLayers(d));
  VIVACE_ASSIGN(const int64_t ffn,
                ReadIntInRange(source, "expert_feed_forward_length", 1, limits::kMaxFfn));
  // GGUF files do not say it: all of them are of models that do.
  const MoeTraits traits = {.normalize = d.is_gguf()};
  d.has_dense_mlp = [&](int64_t i) { return dense[static_cast<size_t>(i)]; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (dense[static_cast<size_t>(i)]) return {};
    VIVACE_ASSIGN(layer->mlp.moe, d.Moe(i, ffn, traits));
    return {};
  });
}

constexpr std::string_view kGguf[] = {"qwen3moe"};
constexpr std::string_view kHf[] = {"Qwen3MoeForCausalLM"};

}  // namespace

const Recipe kQwen3Moe = {"qwen3_moe", kGguf, {kHf, {}, {}, kQwenDefaults}, Build};

}  // namespace vivace::model
