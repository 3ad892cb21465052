#include "model/recipes/granite_family.h"

namespace vivace::model {

Status ReadGraniteScales(Decoder& d) {
  constexpr double kMaxScale = 1e6;
  const auto read = [&](std::string_view key) {
    return ReadFloatOr(d.source(), key, 1.0 / kMaxScale, kMaxScale, 1.0);
  };
  VIVACE_ASSIGN(const double embedding, read("embedding_scale"));
  VIVACE_ASSIGN(const double residual, read("residual_scale"));
  VIVACE_ASSIGN(const double logits, read("logit_scale"));
  d.spec().embedding_scale = static_cast<float>(embedding);
  d.spec().residual_scale = static_cast<float>(residual);
  d.spec().final_norm.weight.scale = static_cast<float>(1.0 / logits);  // logits are divided by it
  return {};
}

}  // namespace vivace::model
