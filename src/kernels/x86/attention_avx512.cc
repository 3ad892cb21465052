#include "kernels/attention.h"
#include "kernels/x86/linear_x86.h"
#include "kernels/x86/norm_qkv_impl.h"
#include "kernels/x86/vec_avx512.h"

namespace vivace::kernels::avx512 {

size_t KvBlockBytes(const KvGeometry& geometry) { return KvBlockBytesImpl<Vec>(geometry); }

size_t AttentionWorkspaceBytes(const WorkspaceShape& shape) {
  return AttentionWorkspaceBytesImpl(x86::kAvx512LinearOps, shape);
}

void NormQkv(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  NormQkvImpl<Vec>(x86::kAvx512LinearOps, args, workspace, pool);
}

void LatentQkv(const LatentQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  kernels::LatentQkv(x86::kAvx512LinearOps, StoreKeys<Vec>, args, workspace, pool);
}

void Attention(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  AttentionImpl<Vec>(args, workspace, pool);
}

}  // namespace vivace::kernels::avx512

// Where dot products of bf16 are fast: the same cache, queries and weights rounded to bf16 as well.
// In this file, because the instruction is written by hand and the rest is this tier's code.
namespace vivace::kernels::avx512bf16 {

size_t AttentionWorkspaceBytes(const WorkspaceShape& shape) {
  return AttentionWorkspaceBytesImpl(x86::kAvx512Bf16LinearOps, shape);
}

void NormQkv(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  NormQkvImpl<avx512::Vec>(x86::kAvx512Bf16LinearOps, args, workspace, pool);
}

void LatentQkv(const LatentQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  kernels::LatentQkv(x86::kAvx512Bf16LinearOps, StoreKeys<avx512::Vec>, args, workspace, pool);
}

void Attention(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  AttentionImpl<avx512::Vec, Bf16DotElements<avx512::Vec>>(args, workspace, pool);
}

}  // namespace vivace::kernels::avx512bf16
