#include "kernels/x86/linear_x86.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <optional>

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
// Activations that should stay in a core's second-level cache while panels stream past them, and
// the groups they may make up: an item's sums of a panel lie on the stack.
constexpr int64_t kHotActivationBytes = 512 << 10;
constexpr int kMaxRunGroups = 24;
// With one group there is nothing to share.
constexpr int kMinRunGroups = 2;
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
  // Groups [first, last), whose rows start at `data`.
  GroupRun Run(const std::byte* data, int64_t row_bytes, int first, int last) const {
    return {data, row_bytes, last - first, narrow_,
            std::clamp(wide_groups_ - first, 0, last - first)};
  }

 private:
  int count_, narrow_, wide_groups_;
};

size_t Align(size_t bytes) { return (bytes + 63) / 64 * 64; }

// What a row of activations takes, by what its weights are multiplied as.
enum Form : int { kInt8Form, kFp32Form, kBf16Form, kNumForms };

int64_t RowBytes(Form form, int32_t cols) {
  constexpr size_t kBlockBytes[kNumForms] = {kInt8BlockBytes, kFp32BlockBytes, kBf16BlockBytes};
  const auto blocks = static_cast<size_t>(NumBlocks(cols));
  return static_cast<int64_t>(blocks * kBlockBytes[form] + (form == kInt8Form ? kInt8RowBytes : 0));
}

size_t FormBytes(Form form, int32_t rows, int32_t cols) {
  return Align(static_cast<size_t>(rows * RowBytes(form, cols)));
}

// The best of each row, in `argmax`.
size_t BestBytes(int32_t rows) { return Align(static_cast<size_t>(rows) * sizeof(uint64_t)); }

size_t InputBytes(int32_t rows, int32_t cols, int /*threads*/) {
  size_t bytes = BestBytes(rows);
  for (int form = 0; form < kNumForms; ++form) {
    bytes += FormBytes(static_cast<Form>(form), rows, cols);
  }
  return bytes;
}

// A tier: its kernels, and those for BF16 weights if it has any of its own.
struct Tier {
  const TierKernels& kernels;
  const Bf16Kernels* bf16 = nullptr;

  Form FormOf(Format format) const {
    if (TakesInt8(format)) return kInt8Form;
    return format == kBF16 && bf16 ? kBf16Form : kFp32Form;
  }
};

// The forms of a step's rows, one behind the other in the caller's buffer.
class Forms {
 public:
  Forms(const InputRows& input, const bool (&wanted)[kNumForms], std::byte* buffer) {
    for (int form = 0; form < kNumForms; ++form) {
      row_bytes_[form] = RowBytes(static_cast<Form>(form), input.cols);
      if (wanted[form]) data_[form] = buffer;
      buffer += FormBytes(static_cast<Form>(form), input.rows, input.cols);
    }
    end_ = buffer;
  }
  // Rows from `row` on, or null.
  std::byte* From(Form form, int row) const {
    return data_[form] ? data_[form] + row * row_bytes_[form] : nullptr;
  }
  std::byte* end() const { return end_; }

 private:
  std::byte* data_[kNumForms] = {};
  int64_t row_bytes_[kNumForms];
  std::byte* end_;
};

PreparedInput Prepare(const Tier& tier, const InputRows& input, const MatrixGroup& group,
                      std::byte* buffer, ThreadPool& pool) {
  bool wanted[kNumForms] = {};
  for (int p = 0; p < group.num_parts; ++p) {
    wanted[tier.FormOf(*FormatOf(group.parts[p].dtype))] = true;
  }
  const Forms forms(input, wanted, buffer);
  const RowGroups groups(input.rows, tier.kernels.max_width);
  const int blocks = NumBlocks(input.cols);
  const int pairs = (blocks + 1) / 2;  // of blocks, which stay together
  // A few rows are one group: then threads share its columns, each computing the norms for itself.
  const bool parallel = int64_t{input.rows} * input.cols >= kMinParallelValues;
  const int splits = parallel ? std::clamp(2 * pool.size() / std::max(1, groups.count()), 1,
                                           std::min(pairs, pool.size()))
                              : 1;
  const auto bound = [&](int split) { return std::min(blocks, pairs * split / splits * 2); };
  const auto item = [&](int64_t i) {
    const int g = static_cast<int>(i / splits), split = static_cast<int>(i % splits);
    const int first = groups.First(g);
    GroupRows rows{.rows = {},
                   .width = groups.Width(g),
                   .cols = input.cols,
                   .norm_weight = input.norm.weight,
                   .norm_eps = input.norm.eps,
                   .first_block = bound(split),
                   .last_block = bound(split + 1),
                   .int8 = forms.From(kInt8Form, first),
                   .fp32 = forms.From(kFp32Form, first),
                   .bf16 = forms.From(kBf16Form, first)};
    for (int r = 0; r < rows.width; ++r) {
      const int64_t row = input.index ? input.index[first + r] : first + r;
      rows.rows[r] = input.x + row * input.stride;
    }
    tier.kernels.prepare(rows);
  };
  const int64_t items = int64_t{groups.count()} * splits;
  if (parallel) {
    pool.ForEach(items, item);
  } else {
    for (int64_t i = 0; i < items; ++i) item(i);
  }
  return {.rows = input.rows,
          .cols = input.cols,
          .int8 = forms.From(kInt8Form, 0),
          .fp32 = forms.From(kFp32Form, 0),
          .bf16 = forms.From(kBf16Form, 0),
          .scratch = forms.end()};
}

// `Best` as an integer that is greater for the better of two. Ids are -1 .. 2^31 - 2.
uint64_t Key(Best best) {
  const auto bits = std::bit_cast<uint32_t>(best.value + 0.0f);  // -0 and 0 are equal
  const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | ~static_cast<uint32_t>(best.id + 1);
}
int32_t IdOfKey(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)) - 1; }

constexpr Best kNone{-std::numeric_limits<float>::infinity(), -1};

// Whoever finds a better one puts it in: most often nobody does.
void RaiseTo(uint64_t key, uint64_t& best) {
  std::atomic_ref<uint64_t> shared(best);
  uint64_t seen = shared.load(std::memory_order_relaxed);
  while (key > seen && !shared.compare_exchange_weak(seen, key, std::memory_order_relaxed)) {
  }
}

// Calls body(i) for 0 <= i < count. Each worker goes through a share of its own in order, as memory
// likes it, and then helps the others with what is left of theirs.
template <typename Body>
void ForEachInShares(ThreadPool& pool, int64_t count, const Body& body) {
  constexpr int kMaxShares = 64;
  struct alignas(64) Cursor {
    std::atomic<int64_t> next;
  };
  const auto workers = static_cast<int>(std::clamp<int64_t>(count, 1, pool.size()));
  const int shares = std::min(workers, kMaxShares);
  Cursor cursors[kMaxShares];
  const auto first = [&](int share) { return count * share / shares; };
  for (int share = 0; share < shares; ++share) cursors[share].next = first(share);
  pool.ForEach(workers, [&](int64_t own) {
    for (int k = 0; k < shares; ++k) {
      const int share = (static_cast<int>(own) + k) % shares;
      const int64_t end = first(share + 1);
      std::atomic<int64_t>& next = cursors[share].next;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < end;) body(i);
    }
  });
}

// One multiply, seen by its items: a run of panels times a run of row groups.
class Multiplication {
 public:
  Multiplication(const Tier& tier, const MatrixGroup& group, const PreparedInput& input,
                 Epilogue epilogue, float* out, int64_t out_stride, uint64_t* best = nullptr)
      : kernels_(tier.kernels),
        group_(group),
        input_(input),
        epilogue_(epilogue),
        out_(out),
        out_stride_(out_stride),
        best_(best),
        groups_(input.rows, tier.kernels.max_width),
        blocks_(NumBlocks(input.cols)),
        pairs_(epilogue == Epilogue::kSiluMul || epilogue == Epilogue::kGeluTanhMul) {
    VIVACE_DCHECK(!pairs_ || (group.num_parts == 2 && group.parts[0].rows == group.parts[1].rows));
    int64_t weight_bytes = 0;
    int32_t first_out = 0;
    for (int p = 0; p < group.num_parts; ++p) {
      const PackedMatrix& matrix = group.parts[p];
      VIVACE_DCHECK(matrix.cols == input.cols);
      Part& part = parts_[p];
      const Format format = *FormatOf(matrix.dtype);
      part.panel_bytes = PanelBytes(format, blocks_);
      part.first_panel = pairs_ ? 0 : panels_;
      part.first_out = first_out;
      const Form form = tier.FormOf(format);
      const bool bf16 = form == kBf16Form;
      part.multiply = bf16 ? tier.bf16->multiply : tier.kernels.multiply[format];
      part.multiply_run = bf16 ? nullptr : tier.kernels.multiply_run[format];
      part.input = bf16 ? input.bf16 : form == kInt8Form ? input.int8 : input.fp32;
      part.input_row_bytes = RowBytes(form, input.cols);
      if (p == 0 || !pairs_) panels_ += NumPanels(matrix.rows);
      first_out += matrix.rows;
      weight_bytes += NumPanels(matrix.rows) * part.panel_bytes;
    }
    parts_[group.num_parts].first_panel = panels_;
    weight_bytes_per_panel_ = std::max<int64_t>(1, weight_bytes / std::max(1, panels_));
  }

  void Run(ThreadPool& pool) {
    ForEachInShares(pool, Cut(pool.size()), [&](int64_t i) { RunItem(i); });
  }

  // Cuts the work into items for `threads`, and says how many there are.
  int64_t Cut(int threads) {
    if (groups_.count() == 0 || panels_ == 0) return 0;
    const int64_t group_bytes = parts_[0].input_row_bytes * kernels_.max_width;
    const int64_t hot_groups =
        std::clamp<int64_t>(kHotActivationBytes / group_bytes, 1, kMaxRunGroups);
    runs_ = static_cast<int>((groups_.count() + hot_groups - 1) / hot_groups);
    const int64_t rows = (input_.rows + runs_ - 1) / runs_;
    const int64_t macs = rows * input_.cols * kTileRows * (pairs_ ? 2 : 1);
    const int64_t enough =
        std::min(1 + kMinItemWeightBytes / weight_bytes_per_panel_, 1 + kMinItemMacs / macs);
    const int64_t fair = std::max<int64_t>(1, panels_ / (threads * kItemsPerThread));
    panels_per_item_ = static_cast<int>(std::max(enough, fair));
    panel_items_ = (panels_ + panels_per_item_ - 1) / panels_per_item_;
    return int64_t{panel_items_} * runs_;
  }

  void RunItem(int64_t i) const {
    const int run = static_cast<int>(i / panel_items_);
    const int first_group = groups_.count() * run / runs_;
    const int last_group = groups_.count() * (run + 1) / runs_;
    const int first_panel = static_cast<int>(i % panel_items_) * panels_per_item_;
    const int last_panel = std::min(first_panel + panels_per_item_, panels_);
    for (int panel = first_panel; panel < last_panel; ++panel) {
      RunPanel(panel, first_group, last_group);
    }
  }

 private:
  static constexpr int kRunFloats = kMaxRunGroups * kMaxWidth * kTileRows;

  struct Part {
    const TileKernel* multiply = nullptr;
    RunKernel multiply_run = nullptr;
    int64_t panel_bytes = 0;
    int32_t first_panel = 0;
    int32_t first_out = 0;
    const std::byte* input = nullptr;
    int64_t input_row_bytes = 0;
  };

  int PartOf(int panel) const {
    int p = 0;
    if (!pairs_) {
      while (panel >= parts_[p + 1].first_panel) ++p;
    }
    return p;
  }

  const std::byte* Panel(int p, int panel) const {
    return group_.parts[p].data + (panel - parts_[p].first_panel) * parts_[p].panel_bytes;
  }
  const std::byte* Input(int p, int g) const {
    return parts_[p].input + groups_.First(g) * parts_[p].input_row_bytes;
  }

  void Product(int p, int panel, int g, float* c) const {
    parts_[p].multiply[groups_.Width(g)](Panel(p, panel), Input(p, g), blocks_, c);
  }

  void ProductOfRun(int p, int panel, int first_group, int last_group, const GroupDone& done,
                    float* c) const {
    const GroupRun run =
        groups_.Run(Input(p, first_group), parts_[p].input_row_bytes, first_group, last_group);
    parts_[p].multiply_run(Panel(p, panel), run, blocks_, done, c);
  }

  // One panel (of gate and of up, for pairs) times the rows of the groups.
  void RunPanel(int panel, int first_group, int last_group) const {
    alignas(64) float c[2][kRunFloats];
    const int p = PartOf(panel);
    const bool as_run = last_group - first_group >= kMinRunGroups && parts_[p].multiply_run &&
                        (!pairs_ || parts_[1].multiply_run);
    if (!as_run) {
      for (int g = first_group; g < last_group; ++g) {
        Product(p, panel, g, c[0]);
        if (pairs_) Product(1, panel, g, c[1]);
        Finish(p, panel, g, c[0], c[1]);
      }
      return;
    }
    const auto finish = [&](int g, const float* sums) {
      const int row = groups_.First(first_group + g) - groups_.First(first_group);
      const float* gate = pairs_ ? c[0] + row * kTileRows : sums;
      Finish(p, panel, first_group + g, gate, sums);
    };
    using Callable = decltype(finish);
    const GroupDone done{[](void* context, int g, const float* sums) {
                           (*static_cast<Callable*>(context))(g, sums);
                         },
                         const_cast<void*>(static_cast<const void*>(&finish))};
    if (pairs_) ProductOfRun(0, panel, first_group, last_group, {}, c[0]);
    ProductOfRun(pairs_ ? 1 : p, panel, first_group, last_group, done, c[1]);
  }

  void Fold(const float* c, const float* bias, int width, int valid, int32_t first_id,
            uint64_t* keys) const {
    Best best[kMaxWidth];
    std::fill_n(best, width, kNone);
    kernels_.fold_best(c, bias, width, valid, first_id, best);
    for (int i = 0; i < width; ++i) RaiseTo(Key(best[i]), keys[i]);
  }

  // The epilogue of a group, from its sums; `up` for pairs only.
  void Finish(int p, int panel, int g, const float* sums, const float* up) const {
    const Part& part = parts_[p];
    const int first = (panel - part.first_panel) * kTileRows;
    const int column = part.first_out + first;
    const int valid = std::min(kTileRows, group_.parts[p].rows - first);
    const float* bias = group_.bias ? group_.bias + column : nullptr;
    if (best_) {
      Fold(sums, bias, groups_.Width(g), valid, column, best_ + groups_.First(g));
      return;
    }
    const TileOut out{out_ + groups_.First(g) * out_stride_ + column, out_stride_, groups_.Width(g),
                      valid};
    if (!pairs_) {
      (epilogue_ == Epilogue::kAdd ? kernels_.add : kernels_.store)(sums, bias, out);
      return;
    }
    const float* up_bias = bias ? bias + group_.parts[0].rows : nullptr;
    (epilogue_ == Epilogue::kSiluMul ? kernels_.silu_mul : kernels_.gelu_tanh_mul)(sums, up, bias,
                                                                                   up_bias, out);
  }

  const TierKernels& kernels_;
  const MatrixGroup& group_;
  const PreparedInput& input_;
  const Epilogue epilogue_;
  float* const out_;
  const int64_t out_stride_;
  uint64_t* const best_;  // of each row, instead of `out_`; or null
  const RowGroups groups_;
  const int blocks_;
  const bool pairs_;  // gate and up: two parts make one output
  Part parts_[MatrixGroup::kMaxParts + 1];
  int32_t panels_ = 0;
  int64_t weight_bytes_per_panel_ = 1;
  int runs_ = 0, panels_per_item_ = 0, panel_items_ = 0;
};

void MultiplyAll(const Tier& tier, std::span<const Product> products, Epilogue epilogue,
                 ThreadPool& pool) {
  VIVACE_DCHECK(products.size() <= kMaxProducts);
  std::optional<Multiplication> multiplications[kMaxProducts];
  int64_t ends[kMaxProducts];  // items of each and of those before it
  int64_t items = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const Product& p = products[i];
    multiplications[i].emplace(tier, *p.group, p.input, epilogue, p.out, p.out_stride);
    ends[i] = items += multiplications[i]->Cut(pool.size());
  }
  ForEachInShares(pool, items, [&](int64_t item) {
    const auto i = std::upper_bound(ends, ends + products.size(), item) - ends;
    multiplications[i]->RunItem(i == 0 ? item : item - ends[i - 1]);
  });
}

void Argmax(const Tier& tier, const MatrixGroup& group, const PreparedInput& input, TokenId* best,
            ThreadPool& pool) {
  auto* const keys = reinterpret_cast<uint64_t*>(input.scratch);
  std::fill_n(keys, input.rows, Key(kNone));
  Multiplication(tier, group, input, Epilogue::kStore, nullptr, 0, keys).Run(pool);
  for (int32_t i = 0; i < input.rows; ++i) best[i] = IdOfKey(keys[i]);
}

void Embed(const EmbedArgs& args, ThreadPool& pool) {
  const int64_t cols = args.table->cols;
  pool.ForEach(static_cast<int64_t>(args.tokens.size()), [&](int64_t i) {
    UnpackRow(*args.table, args.tokens[static_cast<size_t>(i)], args.scale, args.out + i * cols);
  });
}

// The op table of a tier.
template <const Tier& kTier>
constexpr LinearOps MakeOps(Isa isa) {
  return {
      .isa = isa,
      .pack_version = kPackVersion,
      .can_pack = CanPack,
      .packed_bytes = PackedBytes,
      .pack = Pack,
      .input_bytes = InputBytes,
      .prepare = [](const InputRows& input, const MatrixGroup& group, std::byte* buffer,
                    ThreadPool& pool) { return Prepare(kTier, input, group, buffer, pool); },
      .multiply =
          [](const MatrixGroup& group, const PreparedInput& input, Epilogue epilogue, float* out,
             int64_t out_stride, ThreadPool& pool) {
            Multiplication(kTier, group, input, epilogue, out, out_stride).Run(pool);
          },
      .multiply_all = [](std::span<const Product> products, Epilogue epilogue,
                         ThreadPool& pool) { MultiplyAll(kTier, products, epilogue, pool); },
      .argmax = [](const MatrixGroup& group, const PreparedInput& input, TokenId* best,
                   ThreadPool& pool) { Argmax(kTier, group, input, best, pool); },
      .embed = Embed,
  };
}

constexpr Tier kAvx2{kAvx2Kernels};
constexpr Tier kAvxVnni{kAvxVnniKernels};
constexpr Tier kAvx512{kAvx512Kernels};
constexpr Tier kAvx512Bf16{kAvx512Kernels, &kAvx512Bf16Kernels};

}  // namespace

constinit const LinearOps kAvx2LinearOps = MakeOps<kAvx2>(Isa::kAvx2);
constinit const LinearOps kAvxVnniLinearOps = MakeOps<kAvxVnni>(Isa::kAvxVnni);
constinit const LinearOps kAvx512LinearOps = MakeOps<kAvx512>(Isa::kAvx512);
constinit const LinearOps kAvx512Bf16LinearOps = MakeOps<kAvx512Bf16>(Isa::kAvx512Bf16);

}  // namespace vivace::kernels::x86
