#include "kernels/block_ops.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/linear.h"
#include "kernels/reference/linear_reference.h"
#include "kernels/x86/linear_x86.h"

namespace vivace::kernels {
namespace {

// The ops that are linear algebra and nothing else, for any tier.
template <const LinearOps& kLinear>
struct LinearBlocks {
  static void Apply(const InputRows& input, const MatrixGroup& weights, Epilogue epilogue,
                    float* out, int64_t out_stride, Workspace workspace, ThreadPool& pool) {
    VIVACE_DCHECK(kLinear.input_bytes(input.rows, input.cols, pool.size()) <= workspace.bytes);
    const PreparedInput prepared = kLinear.prepare(input, weights, workspace.data, pool);
    kLinear.multiply(weights, prepared, epilogue, out, out_stride, pool);
  }

  static void ProjectResidual(const ProjectResidualArgs& args, Workspace workspace,
                              ThreadPool& pool) {
    const PackedMatrix& matrix = args.weight->parts[0];
    const InputRows input{
        .x = args.y, .stride = matrix.cols, .rows = args.num_rows, .cols = matrix.cols};
    Apply(input, *args.weight, Epilogue::kAdd, args.x, matrix.rows, workspace, pool);
  }

  static void NormGateUp(const NormGateUpArgs& args, Workspace workspace, ThreadPool& pool) {
    const PackedMatrix& gate = args.gate_up->parts[0];
    const InputRows input{.x = args.x,
                          .stride = gate.cols,
                          .rows = args.num_rows,
                          .cols = gate.cols,
                          .norm = {args.norm_weight, args.norm_eps}};
    const Epilogue epilogue =
        args.activation == Activation::kSilu ? Epilogue::kSiluMul : Epilogue::kGeluTanhMul;
    Apply(input, *args.gate_up, epilogue, args.out, gate.rows, workspace, pool);
  }

  // The chosen rows on their way into lm_head, for either kind of arguments.
  template <typename Args>
  static InputRows HeadInput(const Args& args) {
    const int32_t hidden = args.head->parts[0].cols;
    return {.x = args.x,
            .stride = hidden,
            .rows = static_cast<int32_t>(args.rows.size()),
            .cols = hidden,
            .index = args.rows.data(),
            .norm = {args.norm_weight, args.norm_eps}};
  }

  static void LmHead(const LmHeadArgs& args, Workspace workspace, ThreadPool& pool) {
    Apply(HeadInput(args), *args.head, Epilogue::kStore, args.logits, args.logits_stride, workspace,
          pool);
  }

  static void LmHeadArgmax(const LmHeadArgmaxArgs& args, Workspace workspace, ThreadPool& pool) {
    const InputRows input = HeadInput(args);
    VIVACE_DCHECK(kLinear.input_bytes(input.rows, input.cols, pool.size()) <= workspace.bytes);
    const PreparedInput prepared = kLinear.prepare(input, *args.head, workspace.data, pool);
    kLinear.argmax(*args.head, prepared, args.best, pool);
  }
};

// A tier's attention half, as attention.h declares it.
struct AttentionOps {
  size_t (*kv_block_bytes)(const KvGeometry&);
  void (*norm_qkv)(const NormQkvArgs&, Workspace, ThreadPool&);
  void (*attention)(const AttentionArgs&, Workspace, ThreadPool&);
};

template <const LinearOps& kLinear, size_t (*kAttentionBytes)(const WorkspaceShape&)>
size_t WorkspaceBytes(const WorkspaceShape& shape) {
  const int32_t cols = std::max({shape.hidden, shape.max_cols, shape.ffn});
  return std::max(kLinear.input_bytes(shape.max_rows, cols, shape.threads), kAttentionBytes(shape));
}

template <const LinearOps& kLinear, size_t (*kAttentionBytes)(const WorkspaceShape&)>
BlockOps MakeOps(const AttentionOps& attention, KvDType kv_dtype) {
  using Linear = LinearBlocks<kLinear>;
  return {
      .isa = kLinear.isa,
      .pack_version = kLinear.pack_version,
      .can_pack = kLinear.can_pack,
      .packed_bytes = kLinear.packed_bytes,
      .pack = kLinear.pack,
      .default_kv_dtype = kv_dtype,
      .kv_block_bytes = attention.kv_block_bytes,
      .workspace_bytes = WorkspaceBytes<kLinear, kAttentionBytes>,
      .embed = kLinear.embed,
      .norm_qkv = attention.norm_qkv,
      .attention = attention.attention,
      .project_residual = Linear::ProjectResidual,
      .norm_gate_up = Linear::NormGateUp,
      .lm_head = Linear::LmHead,
      .lm_head_argmax = Linear::LmHeadArgmax,
  };
}

constexpr std::pair<KvDType, std::string_view> kKvNames[] = {
    {KvDType::kF32, "f32"}, {KvDType::kBF16, "bf16"}, {KvDType::kI8, "int8"}};

}  // namespace

std::string_view Name(KvDType dtype) {
  for (const auto& [known, name] : kKvNames) {
    if (known == dtype) return name;
  }
  return "";
}

std::optional<KvDType> ParseKvDType(std::string_view name) {
  for (const auto& [dtype, known] : kKvNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

const BlockOps& GetBlockOps(Isa isa) {
  VIVACE_CHECK(Supported(isa));
  static const BlockOps kReference =
      MakeOps<reference::kLinearOps, reference::AttentionWorkspaceBytes>(
          {reference::KvBlockBytes, reference::NormQkv, reference::Attention}, KvDType::kF32);
  static const BlockOps kAvx2 = MakeOps<x86::kAvx2LinearOps, avx2::AttentionWorkspaceBytes>(
      {avx2::KvBlockBytes, avx2::NormQkv, avx2::Attention}, KvDType::kBF16);
  static const BlockOps kAvxVnni = MakeOps<x86::kAvxVnniLinearOps, avx2::AttentionWorkspaceBytes>(
      {avx2::KvBlockBytes, avxvnni::NormQkv, avx2::Attention}, KvDType::kBF16);
  static const BlockOps kAvx512 = MakeOps<x86::kAvx512LinearOps, avx512::AttentionWorkspaceBytes>(
      {avx512::KvBlockBytes, avx512::NormQkv, avx512::Attention}, KvDType::kBF16);
  static const BlockOps kAvx512Bf16 =
      MakeOps<x86::kAvx512Bf16LinearOps, avx512bf16::AttentionWorkspaceBytes>(
          {avx512::KvBlockBytes, avx512bf16::NormQkv, avx512bf16::Attention}, KvDType::kBF16);
  switch (isa) {
    case Isa::kReference:
      return kReference;
    case Isa::kAvx2:
      return kAvx2;
    case Isa::kAvxVnni:
      return kAvxVnni;
    case Isa::kAvx512:
      return kAvx512;
    case Isa::kAvx512Bf16:
      return kAvx512Bf16;
  }
  return kReference;
}

}  // namespace vivace::kernels
