#include "kernels/block_ops.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/carve.h"
#include "kernels/latent.h"
#include "kernels/linear.h"
#include "kernels/moe.h"
#include "kernels/recurrent.h"
#include "kernels/reference/linear_reference.h"
#include "kernels/row_ops.h"
#include "kernels/x86/linear_x86.h"

namespace vivace::kernels {
namespace {

// The ops that are linear algebra and nothing else, for any tier.
template <const LinearOps& kLinear>
struct LinearBlocks {
  static void Apply(const InputRows& input, const MatrixGroup& weights, Epilogue epilogue,
                    float* out, int64_t out_stride, std::byte* buffer, ThreadPool& pool) {
    const PreparedInput prepared = kLinear.prepare(input, weights, buffer, pool);
    kLinear.multiply(weights, prepared, epilogue, out, out_stride, pool);
  }

  // A workspace: `floats` for what an op keeps beside the products, then their prepared input.
  struct Pieces {
    Pieces(Workspace workspace, const InputRows& rows, int64_t count, int threads)
        : carve(workspace.data), floats(carve.Take<float>(count)), input(carve.Take<std::byte>(0)) {
      VIVACE_DCHECK(carve.bytes() + kLinear.input_bytes(rows.rows, rows.cols, threads) <=
                    workspace.bytes);
    }

    Carve carve;
    float* floats;
    std::byte* input;
  };

  static void ProjectResidual(const ProjectResidualArgs& args, Workspace workspace,
                              ThreadPool& pool) {
    const PackedMatrix& matrix = args.weight->parts[0];
    const InputRows input{
        .x = args.y, .stride = matrix.cols, .rows = args.num_rows, .cols = matrix.cols};
    const bool plain = !args.norm.present() && args.scale == 1.0f;
    const int64_t outputs = int64_t{args.num_rows} * matrix.rows;
    const Pieces pieces(workspace, input, plain ? 0 : outputs, pool.size());
    if (plain) {
      Apply(input, *args.weight, Epilogue::kAdd, args.x, matrix.rows, pieces.input, pool);
      return;
    }
    Apply(input, *args.weight, Epilogue::kStore, pieces.floats, matrix.rows, pieces.input, pool);
    AddRows({.y = pieces.floats,
             .norm = args.norm,
             .scale = args.scale,
             .num_rows = args.num_rows,
             .cols = matrix.rows,
             .x = args.x},
            pool);
  }

  static void NormGateUp(const NormGateUpArgs& args, Workspace workspace, ThreadPool& pool) {
    const PackedMatrix& first = args.gate_up->parts[0];
    const bool gated = args.gate_up->num_parts == 2;
    const bool fused = gated && Fused(args.activation.kind);
    InputRows input{.x = args.x, .stride = first.cols, .rows = args.num_rows, .cols = first.cols};
    const int64_t normed = NeedsPass(args.norm) ? int64_t{args.num_rows} * first.cols : 0;
    const int64_t raw = gated && !fused ? int64_t{args.num_rows} * 2 * first.rows : 0;
    const Pieces pieces(workspace, input, normed + raw, pool.size());
    input = WithNorm(input, args.norm, pieces.floats, pool);
    if (fused) {
      Apply(input, *args.gate_up, MulEpilogue(args.activation.kind), args.out, first.rows,
            pieces.input, pool);
      return;
    }
    float* const products = gated ? pieces.floats + normed : args.out;
    Apply(input, *args.gate_up, Epilogue::kStore, products, (gated ? 2 : 1) * first.rows,
          pieces.input, pool);
    Activate(args.activation, gated, products, args.num_rows, first.rows, args.out, pool);
  }

  static void RunExperts(const MoeArgs& args, Workspace workspace, ThreadPool& pool) {
    RunMoe(kLinear, args, workspace, pool);
  }

  static void LatentOutputs(const LatentValuesArgs& args, Workspace workspace, ThreadPool& pool) {
    LatentValues(kLinear, args, workspace, pool);
  }

  // The chosen rows on their way into lm_head, for either kind of arguments.
  template <typename Args>
  static PreparedInput PrepareHead(const Args& args, Workspace workspace, ThreadPool& pool) {
    const int32_t hidden = args.head->parts[0].cols;
    const InputRows input{.x = args.x,
                          .stride = hidden,
                          .rows = static_cast<int32_t>(args.rows.size()),
                          .cols = hidden,
                          .index = args.rows.data()};
    const int64_t normed = NeedsPass(args.norm) ? int64_t{input.rows} * hidden : 0;
    const Pieces pieces(workspace, input, normed, pool.size());
    return kLinear.prepare(WithNorm(input, args.norm, pieces.floats, pool), *args.head,
                           pieces.input, pool);
  }

  static void LmHead(const LmHeadArgs& args, Workspace workspace, ThreadPool& pool) {
    const PreparedInput prepared = PrepareHead(args, workspace, pool);
    kLinear.multiply(*args.head, prepared, Epilogue::kStore, args.logits, args.logits_stride, pool);
    if (args.softcap > 0) {
      SoftcapRows(args.softcap, prepared.rows, args.head->parts[0].rows, args.logits_stride,
                  args.logits, pool);
    }
  }

  static void LmHeadArgmax(const LmHeadArgmaxArgs& args, Workspace workspace, ThreadPool& pool) {
    kLinear.argmax(*args.head, PrepareHead(args, workspace, pool), args.best, pool);
  }
};

template <const LinearOps& kLinear, const RecurrentKernels& kKernels>
void Recurrent(const RecurrentArgs& args, Workspace workspace, ThreadPool& pool) {
  RunRecurrent(kLinear, kKernels, args, workspace, pool);
}

// A tier's attention half, as attention.h declares it, and what may stand in its place.
struct MixerOps {
  size_t (*kv_block_bytes)(const KvGeometry&);
  void (*norm_qkv)(const NormQkvArgs&, Workspace, ThreadPool&);
  void (*attention)(const AttentionArgs&, Workspace, ThreadPool&);
  void (*latent_qkv)(const LatentQkvArgs&, Workspace, ThreadPool&);
  void (*recurrent)(const RecurrentArgs&, Workspace, ThreadPool&);
};

template <const LinearOps& kLinear, size_t (*kAttentionBytes)(const WorkspaceShape&)>
size_t WorkspaceBytes(const WorkspaceShape& shape) {
  const int32_t cols = std::max({shape.hidden, shape.max_cols, shape.ffn});
  Carve carve(nullptr);
  carve.Take<float>(int64_t{shape.max_rows} * (int64_t{shape.hidden} + shape.raw_ffn));
  const size_t linear = carve.bytes() + kLinear.input_bytes(shape.max_rows, cols, shape.threads);
  return std::max({linear, kAttentionBytes(shape), MoeWorkspaceBytes(kLinear, shape),
                   LatentWorkspaceBytes(kLinear, shape), RecurrentWorkspaceBytes(kLinear, shape)});
}

template <const LinearOps& kLinear, size_t (*kAttentionBytes)(const WorkspaceShape&)>
BlockOps MakeOps(const MixerOps& mixer, KvDType kv_dtype) {
  using Linear = LinearBlocks<kLinear>;
  return {
      .isa = kLinear.isa,
      .pack_version = kLinear.pack_version,
      .can_pack = kLinear.can_pack,
      .packed_bytes = kLinear.packed_bytes,
      .pack = kLinear.pack,
      .default_kv_dtype = kv_dtype,
      .kv_block_bytes = mixer.kv_block_bytes,
      .workspace_bytes = WorkspaceBytes<kLinear, kAttentionBytes>,
      .embed = kLinear.embed,
      .norm_qkv = mixer.norm_qkv,
      .latent_qkv = mixer.latent_qkv,
      .attention = mixer.attention,
      .latent_values = Linear::LatentOutputs,
      .recurrent = mixer.recurrent,
      .project_residual = Linear::ProjectResidual,
      .norm_gate_up = Linear::NormGateUp,
      .moe = Linear::RunExperts,
      .add_rows = AddRows,
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
          {reference::KvBlockBytes, reference::NormQkv, reference::Attention, reference::LatentQkv,
           Recurrent<reference::kLinearOps, reference::kRecurrentKernels>},
          KvDType::kF32);
  static const BlockOps kAvx2 = MakeOps<x86::kAvx2LinearOps, avx2::AttentionWorkspaceBytes>(
      {avx2::KvBlockBytes, avx2::NormQkv, avx2::Attention, avx2::LatentQkv,
       Recurrent<x86::kAvx2LinearOps, avx2::kRecurrentKernels>},
      KvDType::kBF16);
  static const BlockOps kAvxVnni = MakeOps<x86::kAvxVnniLinearOps, avx2::AttentionWorkspaceBytes>(
      {avx2::KvBlockBytes, avxvnni::NormQkv, avx2::Attention, avxvnni::LatentQkv,
       Recurrent<x86::kAvxVnniLinearOps, avx2::kRecurrentKernels>},
      KvDType::kBF16);
  static const BlockOps kAvx512 = MakeOps<x86::kAvx512LinearOps, avx512::AttentionWorkspaceBytes>(
      {avx512::KvBlockBytes, avx512::NormQkv, avx512::Attention, avx512::LatentQkv,
       Recurrent<x86::kAvx512LinearOps, avx512::kRecurrentKernels>},
      KvDType::kBF16);
  static const BlockOps kAvx512Bf16 =
      MakeOps<x86::kAvx512Bf16LinearOps, avx512bf16::AttentionWorkspaceBytes>(
          {avx512::KvBlockBytes, avx512bf16::NormQkv, avx512bf16::Attention, avx512bf16::LatentQkv,
           Recurrent<x86::kAvx512Bf16LinearOps, avx512::kRecurrentKernels>},
          KvDType::kBF16);
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
