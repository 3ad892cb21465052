// Where each tier's VocabOps live; for vocab_ops.cc and the tiers' own files.
#pragma once

#include "kernels/vocab_ops.h"

namespace vivace::kernels {

namespace reference {
extern const VocabOps kVocabOps;
}
namespace avx2 {
extern const VocabOps kVocabOps;
}
namespace avx512 {
extern const VocabOps kVocabOps;
}

}  // namespace vivace::kernels
