#include "kernels/linear.h"

#include "base/check.h"
#include "kernels/reference/linear_reference.h"
#include "kernels/row_ops.h"
#include "kernels/x86/linear_x86.h"

namespace vivace::kernels {

bool NeedsPass(const Norm& norm) { return norm.present() && norm.kind != NormKind::kRms; }

InputRows WithNorm(InputRows input, const Norm& norm, float* scratch, ThreadPool& pool) {
  if (!NeedsPass(norm)) {
    input.norm = {norm.weight, norm.eps};
    return input;
  }
  NormRows(norm, input.x, input.stride, input.index, input.rows, input.cols, scratch, pool);
  return {.x = scratch, .stride = input.cols, .rows = input.rows, .cols = input.cols};
}

size_t ProductInputBytes(const LinearOps& linear, int32_t rows, int32_t cols, int threads) {
  // Each input may end in less than what one row adds.
  return linear.input_bytes(rows, cols, threads) +
         kMaxProducts * linear.input_bytes(1, cols, threads);
}

const LinearOps& GetLinearOps(Isa isa) {
  VIVACE_CHECK(Supported(isa));
  switch (isa) {
    case Isa::kReference:
      return reference::kLinearOps;
    case Isa::kAvx2:
      return x86::kAvx2LinearOps;
    case Isa::kAvxVnni:
      return x86::kAvxVnniLinearOps;
    case Isa::kAvx512:
      return x86::kAvx512LinearOps;
    case Isa::kAvx512Bf16:
      return x86::kAvx512Bf16LinearOps;
  }
  return reference::kLinearOps;
}

}  // namespace vivace::kernels
