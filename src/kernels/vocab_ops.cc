#include "kernels/vocab_ops.h"

#include "kernels/vocab_tiers.h"

namespace vivace::kernels {

const VocabOps& GetVocabOps(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return reference::kVocabOps;
    case Isa::kAvx2:
    case Isa::kAvxVnni:
      return avx2::kVocabOps;
    case Isa::kAvx512:
    case Isa::kAvx512Bf16:
      return avx512::kVocabOps;
  }
  return reference::kVocabOps;
}

}  // namespace vivace::kernels
