// What the Qwen 2 and 3 families share.
#pragma once

#include "model/decoder.h"
#include "model/hf_names.h"

namespace vivace::model {

inline constexpr HfDefault kQwenDefaults[] = {
    {"attention.sliding_window", 4096, /*null_is_none=*/true}};

// `windows` of a Decoder: none unless the file turns them on. `by_depth`: the first
// max_window_layers see everything where no list of layer types says otherwise; else all layers
// have a window.
Result<std::vector<int32_t>> QwenWindows(const Decoder& d, bool by_depth);

// Layers without experts: those of mlp_only_layers and all but each decoder_sparse_step-th. GGUF
// files have none.
Result<std::vector<bool>> QwenDenseLayers(const Decoder& d);

// Widths of an expert and of the one that every token uses.
struct QwenExperts {
  int64_t ffn;
  int64_t shared_ffn;
};
Result<QwenExperts> ReadQwenExperts(const Decoder& d);

// Experts beside a shared one, which is scaled by a gate of its own.
Result<MoeSpec> QwenSharedMoe(Decoder& d, int64_t layer, const QwenExperts& experts,
                              const MoeTraits& traits);

}  // namespace vivace::model
