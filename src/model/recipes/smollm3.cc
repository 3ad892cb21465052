// SmolLM3: llama with every fourth layer not rotated.
#include "base/limits.h"
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

// True where a layer is rotated.
Result<std::vector<bool>> RotatedLayers(const Decoder& d) {
  const ModelSource& source = d.source();
  const int64_t layers = d.hparams().layers;
  if (source.Has("rope.layers")) return ReadLayerFlags(source, "rope.layers", layers);
  VIVACE_ASSIGN(const int64_t interval,
                ReadIntOr(source, "rope.layer_interval", 1, limits::kMaxLayers, 4));
  std::vector<bool> rotated;
  for (int64_t i = 0; i < layers; ++i) rotated.push_back((i + 1) % interval != 0);
  return rotated;
}

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kSmolLm3.name,
                                         {.gguf_interleaved_rope = true, .rope_theta = 2e6}));
  VIVACE_ASSIGN(const std::vector<bool> rotated, RotatedLayers(d));
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/1));
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (!rotated[static_cast<size_t>(i)]) layer->attention.rope = {};
    return {};
  });
}

constexpr std::string_view kGguf[] = {"smollm3"};
constexpr std::string_view kHf[] = {"SmolLM3ForCausalLM"};
constexpr HfKey kKeys[] = {
    {"rope.layers", "no_rope_layers"},  // 1 where there is RoPE
    {"rope.layer_interval", "no_rope_layer_interval"},
};

}  // namespace

const Recipe kSmolLm3 = {"smollm3", kGguf, {kHf, kKeys}, Build};

}  // namespace vivace::model
