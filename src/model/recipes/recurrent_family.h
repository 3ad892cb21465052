// What families with recurrent layers share: which layers they are, and how files keep what such a
// layer is made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"

namespace vivace::model {

// The recurrent layers, by the list the file has. GGUF files say it by layers without KV heads.
Result<std::vector<bool>> RecurrentLayers(const Decoder& d);

// Taps of a convolution.
Result<int64_t> ReadConvWidth(const ModelSource& source, std::string_view key);

// Sizes of a state for each head, by GGUF's keys (ssm.*), which fit each other. `inner` is the
// width of all value heads together.
Result<kernels::RecurrentGeometry> ReadStates(const ModelSource& source,
                                              kernels::RecurrentKind kind, int64_t inner);

// The taps of a depthwise convolution as [width, channels]; GGUF files have [channels, width], and
// Hugging Face folders [channels, 1, width].
Result<WeightSpec> ConvTaps(Decoder& d, const std::string& name, int64_t channels, int64_t width);

// The parts of a layer with a state for each head (ssm_conv1d, ssm_dt, ssm_out, and ssm_a, which
// Hugging Face folders keep as A_log), once its geometry is set. GGUF files of Mamba have numbers
// of heads as columns.
Status NameStateParts(Decoder& d, int64_t layer, RecurrentSpec* spec);
Result<WeightSpec> PerHead(Decoder& d, const std::string& name, const RecurrentSpec& spec);

}  // namespace vivace::model
