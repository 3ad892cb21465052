#include "kernels/linear.h"

#include "base/check.h"
#include "kernels/reference/linear_reference.h"
#include "kernels/x86/linear_x86.h"

namespace vivace::kernels {

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
