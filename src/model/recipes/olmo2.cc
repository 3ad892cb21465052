// OLMo 2: norms stand after attention and MLP only; q and k are normalised over all heads at once.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  // OLMo 3, whose GGUF files say "olmo2" too, has windows with a RoPE of their own.
  VIVACE_ASSIGN(const int64_t window,
                ReadIntOr(source, "attention.sliding_window", 0, UINT32_MAX, 0));
  if (window != 0) {
    return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "attention.sliding_window",
                           "OLMo models with sliding windows are not supported");
  }
  return BuildDecoder(source, kOlmo2.name,
                      {.pre_norms = false, .post_norms = true, .qk_norm = QkNorm::kWhole});
}

constexpr std::string_view kGguf[] = {"olmo2"};
constexpr std::string_view kHf[] = {"Olmo2ForCausalLM"};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};

}  // namespace

const Recipe kOlmo2 = {"olmo2", kGguf, {kHf, {}, kTensors}, Build};

}  // namespace vivace::model
