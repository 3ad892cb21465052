// The attention half of a layer, per tier: {norm + QKV + RoPE + KV write} and {attention}. These
// are the `norm_qkv`, `latent_qkv` and `attention` entries of the tier's BlockOps, and the two
// sizes they need.
//
// Reduction order (design rule 1). A query's answer is made from its own position alone: positions
// are taken in tiles of kPositionTile counted from 0, an online softmax runs over the tiles of one
// split of kPositionSplit positions, and the splits' partial results (max, sum, output) are merged
// in order. Which thread computes a split, how many queries share a tile of K and V and where a
// prompt was cut change nothing, nor whether sequences that begin with the same blocks read them
// together (PrefixGroup). Positions a query may not see have no effect, whatever they hold: a NaN
// row reaches those who see it and nobody else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/block_ops.h"

namespace vivace::kernels {

inline constexpr int32_t kPositionTile = 64;
inline constexpr int32_t kPositionSplit = 512;  // a multiple of kPositionTile

// Per tier:
//   KvBlockBytes             bytes of one layer's block: K and V of all kv heads; 0 when the tier
//                            cannot serve the geometry (then the engine refuses at load)
//   AttentionWorkspaceBytes  scratch that serves both ops for the largest step
#define VIVACE_DECLARE_ATTENTION(tier)                               \
  namespace tier {                                                   \
  size_t KvBlockBytes(const KvGeometry& geometry);                   \
  size_t AttentionWorkspaceBytes(const WorkspaceShape& shape);       \
  void NormQkv(const NormQkvArgs& args, Workspace, ThreadPool&);     \
  void LatentQkv(const LatentQkvArgs& args, Workspace, ThreadPool&); \
  void Attention(const AttentionArgs& args, Workspace, ThreadPool&); \
  }

VIVACE_DECLARE_ATTENTION(reference)
VIVACE_DECLARE_ATTENTION(avx2)
VIVACE_DECLARE_ATTENTION(avx512)

#undef VIVACE_DECLARE_ATTENTION

// The AVX-VNNI tier's is AVX2's, but for the products of norm_qkv and latent_qkv.
namespace avxvnni {
void NormQkv(const NormQkvArgs& args, Workspace, ThreadPool&);
void LatentQkv(const LatentQkvArgs& args, Workspace, ThreadPool&);
}  // namespace avxvnni

// AVX-512's over the same cache, but that bf16 is multiplied by dot products of pairs.
namespace avx512bf16 {
size_t AttentionWorkspaceBytes(const WorkspaceShape& shape);
void NormQkv(const NormQkvArgs& args, Workspace, ThreadPool&);
void LatentQkv(const LatentQkvArgs& args, Workspace, ThreadPool&);
void Attention(const AttentionArgs& args, Workspace, ThreadPool&);
}  // namespace avx512bf16

}  // namespace vivace::kernels
