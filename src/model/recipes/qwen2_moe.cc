// Qwen 2 with experts: beside the chosen ones a shared one, scaled by a gate of its own. The chosen
// ones' weights are taken as the softmax of all has them.
#include "base/limits.h"
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen2Moe.name, {.bias = Bias::kNone}));
  VIVACE_ASSIGN(d.windows, QwenWindows(d, /*by_depth=*/false));
  VIVACE_ASSIGN(const std::vector<bool> dense, QwenDenseLayers(d));
  VIVACE_ASSIGN(const int64_t used, ReadIntInRange(source, "expert_used_count", 1, UINT32_MAX));
  // Early GGUF files have only the width of all experts together.
  VIVACE_ASSIGN(const int64_t ffn,
                ReadIntOr(source, "expert_feed_forward_length", 1, limits::kMaxFfn,
                          std::max<int64_t>(d.hparams().ffn / used, 1)));
  VIVACE_ASSIGN(const int64_t shared_ffn, ReadIntOr(source, "expert_shared_feed_forward_length", 1,
                                                    limits::kMaxFfn, d.hparams().ffn));
  d.has_dense_mlp = [&](int64_t i) { return dense[static_cast<size_t>(i)]; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (dense[static_cast<size_t>(i)]) return {};
    VIVACE_ASSIGN(MoeSpec moe, d.Moe(i, ffn, {}));
    VIVACE_ASSIGN(moe.shared, d.FeedForward(i, "_shexp", shared_ffn));
    VIVACE_ASSIGN(moe.shared_gate, d.weights().Linear(Decoder::Block(i) + "ffn_gate_inp_shexp", 1,
                                                      d.hparams().hidden, Bias::kNone));
    moe.shared_gate.weight.full = true;
    layer->mlp.moe = std::move(moe);
    return {};
  });
}

constexpr std::string_view kGguf[] = {"qwen2moe"};
constexpr std::string_view kHf[] = {"Qwen2MoeForCausalLM"};
constexpr HfKey kKeys[] = {
    {"attention.bias", "qkv_bias"},
    {"moe.dense_layers", "mlp_only_layers"},
    {"moe.layer_step", "decoder_sparse_step"},
};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"},
    {"blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"},
};

}  // namespace

const Recipe kQwen2Moe = {"qwen2_moe", kGguf, {kHf, kKeys, kTensors, kQwenDefaults}, Build};

}  // namespace vivace::model
