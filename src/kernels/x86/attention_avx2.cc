#include "kernels/attention.h"
#include "kernels/x86/linear_x86.h"
#include "kernels/x86/norm_qkv_impl.h"
#include "kernels/x86/vec_avx2.h"

namespace vivace::kernels::avx2 {

size_t KvBlockBytes(const KvGeometry& geometry) { return KvBlockBytesImpl<Vec>(geometry); }

size_t AttentionWorkspaceBytes(const WorkspaceShape& shape) {
  return AttentionWorkspaceBytesImpl(x86::kAvx2LinearOps, shape);
}

void NormQkv(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  NormQkvImpl<Vec>(x86::kAvx2LinearOps, args, workspace, pool);
}

void LatentQkv(const LatentQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  kernels::LatentQkv(x86::kAvx2LinearOps, StoreKeys<Vec>, args, workspace, pool);
}

void Attention(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  AttentionImpl<Vec>(args, workspace, pool);
}

}  // namespace vivace::kernels::avx2

namespace vivace::kernels::avxvnni {

void NormQkv(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  NormQkvImpl<avx2::Vec>(x86::kAvxVnniLinearOps, args, workspace, pool);
}

void LatentQkv(const LatentQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  kernels::LatentQkv(x86::kAvxVnniLinearOps, StoreKeys<avx2::Vec>, args, workspace, pool);
}

}  // namespace vivace::kernels::avxvnni
