#include "model/recipes/qwen_family.h"

#include <algorithm>

#include "base/limits.h"

namespace vivace::model {

Result<std::vector<int32_t>> QwenWindows(const Decoder& d, bool by_depth) {
  const ModelSource& source = d.source();
  VIVACE_ASSIGN(const bool enabled, ReadBoolOr(source, "attention.use_sliding_window", false));
  if (!enabled) {
    VIVACE_RETURN_IF_ERROR(d.CheckNoWindows());
    return std::vector<int32_t>();
  }
  VIVACE_ASSIGN(std::vector<int32_t> windows, d.Windows(/*period=*/0));
  if (!by_depth || source.Has(kWindowLayers)) return windows;
  VIVACE_ASSIGN(const int64_t full, ReadIntOr(source, "attention.full_layers", 0, UINT32_MAX, 28));
  for (size_t i = 0; i < windows.size() && i < static_cast<size_t>(full); ++i) windows[i] = 0;
  return windows;
}

Result<QwenExperts> ReadQwenExperts(const Decoder& d) {
  const ModelSource& source = d.source();
  const int64_t ffn = d.hparams().ffn;
  VIVACE_ASSIGN(const int64_t used, ReadIntInRange(source, "expert_used_count", 1, UINT32_MAX));
  QwenExperts experts = {};
  // Early GGUF files have only the width of all experts together.
  VIVACE_ASSIGN(experts.ffn, ReadIntOr(source, "expert_feed_forward_length", 1, limits::kMaxFfn,
                                       std::max<int64_t>(ffn / used, 1)));
  VIVACE_ASSIGN(experts.shared_ffn,
                ReadIntOr(source, "expert_shared_feed_forward_length", 1, limits::kMaxFfn, ffn));
  return experts;
}

Result<std::vector<bool>> QwenDenseLayers(const Decoder& d) {
  const ModelSource& source = d.source();
  const int64_t layers = d.hparams().layers;
  std::vector<bool> dense(static_cast<size_t>(layers), false);
  VIVACE_ASSIGN(const int64_t step, ReadIntOr(source, "moe.layer_step", 1, limits::kMaxLayers, 1));
  for (int64_t i = 0; i < layers; ++i) dense[static_cast<size_t>(i)] = (i + 1) % step != 0;
  if (!source.Has("moe.dense_layers")) return dense;
  VIVACE_ASSIGN(const std::vector<bool> listed, ReadLayerList(source, "moe.dense_layers", layers));
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = dense[i] || listed[i];
  return dense;
}

Result<MoeSpec> QwenSharedMoe(Decoder& d, int64_t layer, const QwenExperts& experts,
                              const MoeTraits& traits) {
  VIVACE_ASSIGN(MoeSpec moe, d.Moe(layer, experts.ffn, traits));
  VIVACE_ASSIGN(moe.shared, d.FeedForward(layer, "_shexp", experts.shared_ffn));
  VIVACE_ASSIGN(moe.shared_gate, d.weights().Linear(Decoder::Block(layer) + "ffn_gate_inp_shexp", 1,
                                                    d.hparams().hidden, Bias::kNone));
  moe.shared_gate.weight.full = true;
  return moe;
}

}  // namespace vivace::model
