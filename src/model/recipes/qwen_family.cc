#include "model/recipes/qwen_family.h"

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
  if (!by_depth || source.Has("attention.sliding_window_pattern")) return windows;
  VIVACE_ASSIGN(const int64_t full, ReadIntOr(source, "attention.full_layers", 0, UINT32_MAX, 28));
  for (size_t i = 0; i < windows.size() && i < static_cast<size_t>(full); ++i) windows[i] = 0;
  return windows;
}

Result<std::vector<bool>> QwenDenseLayers(const Decoder& d) {
  const ModelSource& source = d.source();
  const int64_t layers = d.hparams().layers;
  std::vector<bool> dense(static_cast<size_t>(layers), false);
  VIVACE_ASSIGN(const int64_t step, ReadIntOr(source, "moe.layer_step", 1, limits::kMaxLayers, 1));
  for (int64_t i = 0; i < layers; ++i) dense[static_cast<size_t>(i)] = (i + 1) % step != 0;
  if (!source.Has("moe.dense_layers")) return dense;
  VIVACE_ASSIGN(const std::vector<double> listed, source.GetFloats("moe.dense_layers"));
  for (const double layer : listed) {
    if (!(layer >= 0 && layer < static_cast<double>(layers))) {
      return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "moe.dense_layers",
                             fmt::format("names layer {} of {}", layer, layers));
    }
    dense[static_cast<size_t>(layer)] = true;
  }
  return dense;
}

}  // namespace vivace::model
