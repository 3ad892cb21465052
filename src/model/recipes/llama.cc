// The llama family: pre-norm decoder, grouped-query attention, RoPE, gated SiLU MLP. Biases, head
// width, tied embeddings and RoPE scaling are options of the file.
#include "base/limits.h"
#include "model/recipes/list.h"
#include "model/recipes/llama_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) { return BuildLlamaFamily(source, kLlama.name); }

constexpr std::string_view kGguf[] = {"llama"};
constexpr std::string_view kHf[] = {"LlamaForCausalLM"};

}  // namespace

Result<ModelSpec> BuildLlamaFamily(const ModelSource& source, std::string_view recipe,
                                   FamilyTraits traits) {
  // GGUF converters permute q and k rows so that a rotated pair lies side by side.
  traits.gguf_interleaved_rope = true;
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, recipe, traits));
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/0));
  VIVACE_ASSIGN(const int64_t experts, ReadIntOr(source, "expert_count", 0, UINT32_MAX, 0));
  VIVACE_ASSIGN(const int64_t expert_ffn, ReadIntOr(source, "expert_feed_forward_length", 1,
                                                    limits::kMaxFfn, d.hparams().ffn));
  if (experts > 0) d.has_dense_mlp = [](int64_t) { return false; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (experts == 0) return {};
    VIVACE_ASSIGN(layer->mlp.moe, d.Moe(i, expert_ffn, {.normalize = true}));
    return {};
  });
}

const Recipe kLlama = {"llama", kGguf, {kHf}, Build};

}  // namespace vivace::model
