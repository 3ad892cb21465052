// What the Granite families share.
#pragma once

#include "model/decoder.h"
#include "model/hf_names.h"

namespace vivace::model {

// Of the classes in transformers, which is not 1 / sqrt(head_dim).
inline constexpr HfDefault kGraniteDefaults[] = {{"attention.scale", 1}};

// The multipliers of the embedding, of what layers add, and of the logits, into the decoder's spec.
Status ReadGraniteScales(Decoder& d);

}  // namespace vivace::model
