// Whether the block ops can compute a model as its recipe describes it: the combinations of fields
// that no op has. What depends on a tier (head sizes, weight types) is asked of its ops in
// memory_plan and weights. A load-time error that names the layer and the part.
#pragma once

#include "base/result.h"
#include "model/spec.h"

namespace vivace {

Status CheckSpec(const model::ModelSpec& spec);

}  // namespace vivace
