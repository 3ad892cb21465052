#include "kernels/x86/linear_x86.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/x86/pack.h"
#include "kernels/x86/tiles.h"

namespace vivace::kernels::x86 {
namespace {

// Handing out an item costs about 0.1 us; an item should be worth many times that.
constexpr int64_t kMinItemWeightBytes = 12 << 10;
constexpr int64_t kMinItemMacs = 300'000;
// Items per thread, where the matrix is large enough: bounds the time others wait for the last.
constexpr int64_t kItemsPerThread = 12;
// Activations that should stay in a core's second-level cache while panels stream past them.
constexpr int64_t kHotActivationBytes = 256 << 10;
// Preparing fewer values than this is done before another thread could help.
constexpr int64_t kMinParallelValues = 4096;

// How `rows` rows are dealt into groups: the fewest groups, widths that differ by at most one.
class RowGroups {
 public:
  RowGroups(int rows, int max_width)
      : count_((rows + max_width - 1) / max_width),
        narrow_(count_ ? rows / count_ : 0),
        wide_groups_(count_ ? rows % count_ : 0) {}

  int count() const { return count_; }
  int Width(int group) const { return narrow_ + (group < wide_groups_); }
  int First(int group) const { return group * narrow_ + std::min(group, wide_groups_); }

 private:
  int count_, narrow_, wide_groups_;
};

size_t Align(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t Int8Bytes(int32_t rows, int32_t cols) {
  return Align(static_cast<size_t>(rows) * static_cast<size_t>(NumBlocks(cols)) * kInt8BlockBytes);
}
size_t Fp32Bytes(int32_t rows, int32_t cols) {
  return Align(static_cast<size_t>(rows) * static_cast<size_t>(NumBlocks(cols)) * kFp32BlockBytes);
}

size_t InputBytes(int32_t rows, int32_t cols, int /*threads*/) {
  return Int8Bytes(rows, cols) + Fp32Bytes(rows, cols);
}

PreparedInput Prepare(const TierKernels& kernels, const InputRows& input, const MatrixGroup& group,
                      std::byte* buffer, ThreadPool& pool) {
  bool any[2] = {};
  for (int p = 0; p < group.num_parts; ++p) any[TakesInt8(*FormatOf(group.parts[p].dtype))] = true;
  std::byte* const int8 = any[1] ? buffer : nullptr;
  std::byte* const fp32 = any[0] ? buffer + Int8Bytes(input.rows, input.cols) : nullptr;
  const PreparedInput prepared{input.rows, input.cols, int8, fp32, nullptr};

  const RowGroups groups(input.rows, kernels.max_width);
  const int blocks = NumBlocks(input.cols);
  // A few rows are one group: then threads share its columns, each computing the norms for itself.
  const bool parallel = int64_t{input.rows} * input.cols >= kMinParallelValues;
  const int splits = parallel ? std::clamp(2 * pool.size() / std::max(1, groups.count()), 1,
                                           std::min(blocks, pool.size()))
                              : 1;
  const auto item = [&](int64_t i) {
    const int g = static_cast<int>(i / splits), split = static_cast<int>(i % splits);
    const int first = groups.First(g);
    GroupRows rows{.rows = {},
                   .width = groups.Width(g),
                   .cols = input.cols,
                   .norm_weight = input.norm.weight,
                   .norm_eps = input.norm.eps,
                   .first_block = blocks * split / splits,
                   .last_block = blocks * (split + 1) / splits,
                   .int8 = nullptr,
                   .fp32 = nullptr};
    for (int r = 0; r < rows.width; ++r) {
      const int64_t row = input.index ? input.index[first + r] : first + r;
      rows.rows[r] = input.x + row * input.stride;
    }
    const size_t skipped = static_cast<size_t>(first) * static_cast<size_t>(blocks);
    if (int8) rows.int8 = int8 + skipped * kInt8BlockBytes;
    if (fp32) rows.fp32 = fp32 + skipped * kFp32BlockBytes;
    kernels.prepare(rows);
  };
  const int64_t items = int64_t{groups.count()} * splits;
  if (parallel) {
    pool.ForEach(items, item);
  } else {
    for (int64_t i = 0; i < items; ++i) item(i);
  }
  return prepared;
}

// One multiply, seen by its items: a run of panels times a run of row groups.
class Multiplication {
 public:
  Multiplication(const TierKernels& kernels, const MatrixGroup& group, const PreparedInput& input,
                 Epilogue epilogue, float* out, int64_t out_stride)
      : kernels_(kernels),
        group_(group),
        input_(input),
        epilogue_(epilogue),
        out_(out),
        out_stride_(out_stride),
        groups_(input.rows, kernels.max_width),
        blocks_(NumBlocks(input.cols)),
        pairs_(epilogue == Epilogue::kSiluMul || epilogue == Epilogue::kGeluTanhMul) {
    VIVACE_DCHECK(!pairs_ || (group.num_parts == 2 && group.parts[0].rows == group.parts[1].rows));
    int64_t weight_bytes = 0;
    int32_t first_out = 0;
    for (int p = 0; p < group.num_parts; ++p) {
      const PackedMatrix& matrix = group.parts[p];
      VIVACE_DCHECK(matrix.cols == input.cols);
      Part& part = parts_[p];
      part.format = *FormatOf(matrix.dtype);
      part.panel_bytes = blocks_ * static_cast<int64_t>(TileBytes(part.format));
      part.first_panel = panels_;
      part.first_out = first_out;
      part.input = TakesInt8(part.format) ? input.int8 : input.fp32;
      part.input_row_bytes =
          blocks_ *
          static_cast<int64_t>(TakesInt8(part.format) ? kInt8BlockBytes : kFp32BlockBytes);
      if (p == 0 || !pairs_) panels_ += NumPanels(matrix.rows);
      first_out += matrix.rows;
      weight_bytes += NumPanels(matrix.rows) * part.panel_bytes;
    }
    parts_[group.num_parts].first_panel = panels_;
    weight_bytes_per_panel_ = std::max<int64_t>(1, weight_bytes / std::max(1, panels_));
  }

  void Run(ThreadPool& pool) {
    if (groups_.count() == 0 || panels_ == 0) return;
    const int64_t row_bytes = parts_[0].input_row_bytes;
    const int64_t hot_groups = kHotActivationBytes / (row_bytes * kernels_.max_width);
    groups_per_item_ = static_cast<int>(std::clamp<int64_t>(hot_groups, 1, groups_.count()));
    const int64_t rows = std::min(input_.rows, groups_per_item_ * kernels_.max_width);
    const int64_t macs = rows * input_.cols * kTileRows * (pairs_ ? 2 : 1);
    const int64_t enough =
        std::min(1 + kMinItemWeightBytes / weight_bytes_per_panel_, 1 + kMinItemMacs / macs);
    const int64_t fair = std::max<int64_t>(1, panels_ / (pool.size() * kItemsPerThread));
    panels_per_item_ = static_cast<int>(std::max(enough, fair));
    panel_items_ = (panels_ + panels_per_item_ - 1) / panels_per_item_;
    const int group_items = (groups_.count() + groups_per_item_ - 1) / groups_per_item_;
    pool.ForEach(int64_t{panel_items_} * group_items, [this](int64_t i) {
      const int first_group = static_cast<int>(i / panel_items_) * groups_per_item_;
      const int first_panel = static_cast<int>(i % panel_items_) * panels_per_item_;
      const int last_group = std::min(first_group + groups_per_item_, groups_.count());
      const int last_panel = std::min(first_panel + panels_per_item_, panels_);
      for (int panel = first_panel; panel < last_panel; ++panel) {
        for (int g = first_group; g < last_group; ++g) Tile(panel, g);
      }
    });
  }

 private:
  struct Part {
    Format format = kF32;
    int64_t panel_bytes = 0;
    int32_t first_panel = 0;
    int32_t first_out = 0;
    const std::byte* input = nullptr;
    int64_t input_row_bytes = 0;
  };

  void Product(int p, int panel, int g, float* c) const {
    const Part& part = parts_[p];
    kernels_.multiply[part.format][groups_.Width(g)](
        group_.parts[p].data + panel * part.panel_bytes,
        part.input + groups_.First(g) * part.input_row_bytes, blocks_, c);
  }

  void Tile(int panel, int g) const {
    alignas(64) float c[2][kMaxWidth * kTileRows];
    int p = 0;
    if (!pairs_) {
      while (panel >= parts_[p + 1].first_panel) ++p;
    }
    const Part& part = parts_[p];
    const int first = (panel - part.first_panel) * kTileRows;
    const int column = part.first_out + first;
    const TileOut out{out_ + groups_.First(g) * out_stride_ + column, out_stride_, groups_.Width(g),
                      std::min(kTileRows, group_.parts[p].rows - first)};
    const float* bias = group_.bias ? group_.bias + column : nullptr;
    Product(p, panel - part.first_panel, g, c[0]);
    if (!pairs_) {
      (epilogue_ == Epilogue::kAdd ? kernels_.add : kernels_.store)(c[0], bias, out);
      return;
    }
    Product(1, panel, g, c[1]);
    const float* up_bias = bias ? bias + group_.parts[0].rows : nullptr;
    (epilogue_ == Epilogue::kSiluMul ? kernels_.silu_mul : kernels_.gelu_tanh_mul)(c[0], c[1], bias,
                                                                                   up_bias, out);
  }

  const TierKernels& kernels_;
  const MatrixGroup& group_;
  const PreparedInput& input_;
  const Epilogue epilogue_;
  float* const out_;
  const int64_t out_stride_;
  const RowGroups groups_;
  const int blocks_;
  const bool pairs_;  // gate and up: two parts make one output
  Part parts_[MatrixGroup::kMaxParts + 1];
  int32_t panels_ = 0;
  int64_t weight_bytes_per_panel_ = 1;
  int groups_per_item_ = 1, panels_per_item_ = 1, panel_items_ = 1;
};

void Embed(const EmbedArgs& args, ThreadPool& pool) {
  const int64_t cols = args.table->cols;
  pool.ForEach(static_cast<int64_t>(args.tokens.size()), [&](int64_t i) {
    UnpackRow(*args.table, args.tokens[static_cast<size_t>(i)], args.scale, args.out + i * cols);
  });
}

// The op table of a tier, from its kernels.
template <const TierKernels& kKernels>
constexpr LinearOps MakeOps(Isa isa) {
  return {
      .isa = isa,
      .can_pack = CanPack,
      .packed_bytes = PackedBytes,
      .pack = Pack,
      .input_bytes = InputBytes,
      .prepare = [](const InputRows& input, const MatrixGroup& group, std::byte* buffer,
                    ThreadPool& pool) { return Prepare(kKernels, input, group, buffer, pool); },
      .multiply =
          [](const MatrixGroup& group, const PreparedInput& input, Epilogue epilogue, float* out,
             int64_t out_stride, ThreadPool& pool) {
            Multiplication(kKernels, group, input, epilogue, out, out_stride).Run(pool);
          },
      .embed = Embed,
  };
}

}  // namespace

constinit const LinearOps kAvx2LinearOps = MakeOps<kAvx2Kernels>(Isa::kAvx2);
constinit const LinearOps kAvx512LinearOps = MakeOps<kAvx512Kernels>(Isa::kAvx512);

}  // namespace vivace::kernels::x86
