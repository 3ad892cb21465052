// Qwen 2 with experts: beside the chosen ones a shared one, scaled by a gate of its own. The chosen
// ones' weights are taken as the softmax of all has them.
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"

namespace vivace::model {
namespace {

// Without a list of layer types every second of the first max_window_layers has a window.
Result<std::vector<int32_t>> Windows(const Decoder& d) {
  VIVACE_ASSIGN(std::vector<int32_t> windows, QwenWindows(d, /*by_depth=*/false));
  if (d.source().Has(kWindowLayers)) return windows;
  VIVACE_ASSIGN(const int64_t most,
                ReadIntOr(d.source(), "attention.window_layers", 0, UINT32_MAX, 28));
  for (size_t i = 0; i < windows.size(); ++i) {
    if (i % 2 == 1 || i >= static_cast<size_t>(most)) windows[i] = 0;
  }
  return windows;
}

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen2Moe.name, {.bias = Bias::kNone}));
  VIVACE_ASSIGN(d.windows, Windows(d));
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
constexpr HfKey kKeys[] = {
    {"attention.bias", "qkv_bias"},
    {"attention.window_layers", "max_window_layers"},
};

}  // namespace

const Recipe kQwen2Moe = {"qwen2_moe", kGguf, {kHf, kKeys, {}, kQwenDefaults}, Build};

}  // namespace vivace::model
