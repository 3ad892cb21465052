// Kernels for tests that look at weights and compute nothing.
#pragma once

#include "kernels/block_ops.h"

namespace vivace::model {

// A tier whose kernels know every type, as the reference tier's do.
inline const kernels::BlockOps& AnyType() {
  static const kernels::BlockOps ops = [] {
    kernels::BlockOps any = {};
    any.can_pack = [](DType, int32_t, int32_t) { return true; };
    return any;
  }();
  return ops;
}

}  // namespace vivace::model
