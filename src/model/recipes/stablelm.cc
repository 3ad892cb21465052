// StableLM: llama with layer norms that have biases, a quarter of each head rotated, biases of q, k
// and v in some; attention and MLP stand side by side in others.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

// GGUF files of parallel models have no ffn_norm. Their own key tells nothing: it is true in files
// of models that are not parallel, and llama.cpp doesn't read it.
Result<bool> IsParallel(const ModelSource& source) {
  if (source.format() == SourceFormat::kGguf) return !source.Tensor("blk.0.ffn_norm.weight");
  return ReadBoolOr(source, "use_parallel_residual", false);
}

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(const bool qk_norm, ReadBoolOr(source, "qk_layernorm", false));
  if (qk_norm) {
    return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "qk_layernorm",
                           "norms of q and k that differ from head to head are not supported");
  }
  VIVACE_ASSIGN(const bool parallel, IsParallel(source));
  return BuildDecoder(source, kStableLm.name,
                      {.norm = kernels::NormKind::kLayer,
                       .norm_bias = true,
                       .parallel = parallel,
                       .bias = Bias::kNone,
                       .rope_fraction = 0.25});
}

constexpr std::string_view kGguf[] = {"stablelm"};
constexpr std::string_view kHf[] = {"StableLmForCausalLM"};
constexpr HfKey kKeys[] = {
    {"attention.bias", "use_qkv_bias"},
    {"qk_layernorm", "qk_layernorm"},
    {"use_parallel_residual", "use_parallel_residual"},
};

}  // namespace

const Recipe kStableLm = {"stablelm", kGguf, {kHf, kKeys}, Build};

}  // namespace vivace::model
