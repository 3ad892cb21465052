// What the Granite families share.
#pragma once

#include "model/decoder.h"

namespace vivace::model {

// The multipliers of the embedding, of what layers add, and of the logits, into the decoder's spec.
Status ReadGraniteScales(Decoder& d);

}  // namespace vivace::model
