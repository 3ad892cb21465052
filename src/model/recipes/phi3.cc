// Phi 3 and 4: llama with q, k and v in one matrix, gate and up in another, longrope and heads that
// may be rotated in part.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d,
                Decoder::Open(source, kPhi3.name, {.fused_qkv = true, .fused_gate_up = true}));
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/0));
  return d.Build();
}

constexpr std::string_view kGguf[] = {"phi3"};
constexpr std::string_view kHf[] = {"Phi3ForCausalLM"};
constexpr HfTensorName kTensors[] = {{"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"}};

}  // namespace

const Recipe kPhi3 = {"phi3", kGguf, {kHf, {}, kTensors}, Build};

}  // namespace vivace::model
