#include "kernels/moe.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "kernels/carve.h"
#include "kernels/qkv_rows_impl.h"
#include "kernels/router.h"
#include "kernels/row_ops.h"

namespace vivace::kernels {
namespace {

// Rows a chunk may have in all, where a step has fewer: decoding rows of many experts.
constexpr int32_t kMinChunkRows = 64;
// Less work than this is done before another thread could help.
constexpr int64_t kMinParallelValues = 16384;
constexpr int32_t kStripeCols = 64;

// What a call works on, for steps of up to `rows` rows.
struct Sizes {
  int32_t rows, hidden, experts, top_k, ffn, raw_ffn;
  int threads;

  int32_t chunk_rows() const { return std::max(rows, kMinChunkRows); }
};

struct Scratch {
  Scratch(const LinearOps& linear, const Sizes& s, Carve* carve) {
    const int64_t rows = s.rows, pairs = rows * s.top_k, chunk = s.chunk_rows();
    normed = carve->Take<float>(rows * s.hidden);
    logits = carve->Take<float>(rows * s.experts);
    select = carve->Take<float>(rows * SelectScratch(s.experts));
    ids = carve->Take<int32_t>(pairs);
    weights = carve->Take<float>(pairs);
    dispatch = {carve->Take<int32_t>(s.experts + 1), carve->Take<int32_t>(pairs),
                carve->Take<float>(pairs)};
    shared_weights = carve->Take<float>(rows);
    raw = carve->Take<float>(chunk * s.raw_ffn);
    ffn = carve->Take<float>(chunk * s.ffn);
    y = carve->Take<float>(chunk * s.hidden);
    input = carve->Take<std::byte>(static_cast<int64_t>(
        std::max({linear.input_bytes(s.rows, s.hidden, s.threads),
                  ProductInputBytes(linear, s.chunk_rows(), s.hidden, s.threads),
                  ProductInputBytes(linear, s.chunk_rows(), s.ffn, s.threads)})));
  }

  float* normed;  // [rows, hidden]
  float* logits;  // [rows, experts]
  float* select;
  int32_t* ids;    // [rows, top_k]
  float* weights;  // likewise
  Dispatch dispatch;
  float* shared_weights;  // [rows]
  // Of a chunk's jobs, one after the other:
  float* raw;  // gate and up, if the activation is a pass of its own
  float* ffn;
  float* y;          // what the experts say
  std::byte* input;  // prepared rows, of the first products, then of the second
};

// An expert and the rows it computes.
struct Job {
  const FeedForward* weights = nullptr;
  const int32_t* rows = nullptr;  // null: all
  const float* row_weights = nullptr;
  int32_t num_rows = 0;
  int32_t first = 0;  // of the chunk's rows

  int32_t ffn() const { return weights->down.parts[0].cols; }
};

bool SameTypes(const MatrixGroup& a, const MatrixGroup& b) {
  if (a.num_parts != b.num_parts) return false;
  for (int p = 0; p < a.num_parts; ++p) {
    if (a.parts[p].dtype != b.parts[p].dtype) return false;
  }
  return true;
}

class Moe {
 public:
  Moe(const LinearOps& linear, const MoeArgs& args, const Sizes& sizes, const Scratch& scratch,
      ThreadPool& pool)
      : linear_(linear), args_(args), sizes_(sizes), s_(scratch), pool_(pool) {}

  void Run() {
    const int32_t rows = args_.num_rows;
    NormRows(args_.norm, args_.x, sizes_.hidden, nullptr, rows, sizes_.hidden, s_.normed, pool_);
    Choose();
    if (args_.shared != nullptr) WeighShared();
    std::fill_n(args_.out, int64_t{rows} * sizes_.hidden, 0.0f);
    for (int32_t e = 0; e < sizes_.experts; ++e) {
      const int32_t first = s_.dispatch.first[e];
      const int32_t count = s_.dispatch.first[e + 1] - first;
      if (count == 0) continue;
      AddJob({.weights = &args_.experts[static_cast<size_t>(e)],
              .rows = s_.dispatch.rows + first,
              .row_weights = s_.dispatch.weights + first,
              .num_rows = count});
    }
    if (args_.shared != nullptr) {
      AddJob({.weights = args_.shared, .row_weights = s_.shared_weights, .num_rows = rows});
    }
    Flush();
  }

 private:
  // out [rows, outputs of group] of the normed rows.
  void Multiply(const MatrixGroup& group, float* out) {
    const PreparedInput input =
        linear_.prepare(RowsOf({.num_rows = args_.num_rows}), group, s_.input, pool_);
    linear_.multiply(group, input, Epilogue::kStore, out, group.parts[0].rows, pool_);
  }

  InputRows RowsOf(const Job& job) const {
    return {.x = s_.normed,
            .stride = sizes_.hidden,
            .rows = job.num_rows,
            .cols = sizes_.hidden,
            .index = job.rows};
  }

  void Choose() {
    const Router& router = *args_.router;
    Multiply(router.weight, s_.logits);
    const int32_t rows = args_.num_rows, experts = sizes_.experts, top_k = sizes_.top_k;
    ForStepRows(
        rows,
        [&](int64_t row) {
          SelectExperts(router, s_.logits + row * experts, s_.select + row * SelectScratch(experts),
                        s_.ids + row * top_k, s_.weights + row * top_k);
        },
        pool_);
    SortByExpert(s_.ids, s_.weights, rows, top_k, experts, s_.dispatch);
  }

  void WeighShared() {
    if (args_.shared_gate == nullptr) {
      std::fill_n(s_.shared_weights, args_.num_rows, 1.0f);
      return;
    }
    Multiply(*args_.shared_gate, s_.shared_weights);
    for (int32_t i = 0; i < args_.num_rows; ++i) {
      s_.shared_weights[i] = Sigmoid(s_.shared_weights[i]);
    }
  }

  void AddJob(Job job) {
    if (num_jobs_ == kMaxProducts || rows_ + job.num_rows > sizes_.chunk_rows()) Flush();
    job.first = rows_;
    rows_ += job.num_rows;
    jobs_[num_jobs_++] = job;
  }

  std::span<const Job> jobs() const { return {jobs_, static_cast<size_t>(num_jobs_)}; }

  // Computes the chunk and adds what came of it.
  void Flush() {
    if (num_jobs_ == 0) return;
    FirstProducts();
    SecondProducts();
    AddUp();
    num_jobs_ = rows_ = 0;
  }

  void FirstProducts() {
    const bool gated = jobs_[0].weights->gate_up.num_parts == 2;
    const bool fused = gated && Fused(args_.activation.kind);
    Product products[kMaxProducts];
    std::byte* buffer = s_.input;
    PreparedInput whole;  // of a job that has all rows: they need preparing once only
    const MatrixGroup* whole_group = nullptr;
    for (int i = 0; i < num_jobs_; ++i) {
      const Job& job = jobs_[i];
      const MatrixGroup& group = job.weights->gate_up;
      Product& product = products[i];
      const bool all = job.num_rows == args_.num_rows;
      if (all && whole_group != nullptr && SameTypes(*whole_group, group)) {
        product.input = whole;
      } else {
        product.input = linear_.prepare(RowsOf(job), group, buffer, pool_);
        buffer += linear_.input_bytes(job.num_rows, sizes_.hidden, pool_.size());
        if (all) whole = product.input, whole_group = &group;
      }
      product.group = &group;
      product.out_stride = gated && !fused ? 2 * job.ffn() : job.ffn();
      product.out = gated && !fused ? s_.raw + int64_t{job.first} * sizes_.raw_ffn
                                    : s_.ffn + int64_t{job.first} * sizes_.ffn;
    }
    const Epilogue epilogue = fused ? MulEpilogue(args_.activation.kind) : Epilogue::kStore;
    linear_.multiply_all({products, static_cast<size_t>(num_jobs_)}, epilogue, pool_);
    if (fused) return;
    for (int i = 0; i < num_jobs_; ++i) {
      Activate(args_.activation, gated, products[i].out, jobs_[i].num_rows, jobs_[i].ffn(),
               s_.ffn + int64_t{jobs_[i].first} * sizes_.ffn, pool_);
    }
  }

  void SecondProducts() {
    Product products[kMaxProducts];
    std::byte* buffer = s_.input;
    for (int i = 0; i < num_jobs_; ++i) {
      const Job& job = jobs_[i];
      const InputRows input{.x = s_.ffn + int64_t{job.first} * sizes_.ffn,
                            .stride = job.ffn(),
                            .rows = job.num_rows,
                            .cols = job.ffn()};
      products[i] = {.group = &job.weights->down,
                     .input = linear_.prepare(input, job.weights->down, buffer, pool_),
                     .out = s_.y + int64_t{job.first} * sizes_.hidden,
                     .out_stride = sizes_.hidden};
      buffer += linear_.input_bytes(job.num_rows, job.ffn(), pool_.size());
    }
    linear_.multiply_all({products, static_cast<size_t>(num_jobs_)}, Epilogue::kStore, pool_);
  }

  // Threads take columns, so that each adds a row's experts in their order.
  void AddUp() {
    const int32_t hidden = sizes_.hidden;
    const auto add = [&](int64_t stripe) {
      const auto first = static_cast<int32_t>(stripe) * kStripeCols;
      AddColumns(first, std::min(first + kStripeCols, hidden));
    };
    const int64_t stripes = (hidden + kStripeCols - 1) / kStripeCols;
    if (int64_t{rows_} * hidden < kMinParallelValues) {
      AddColumns(0, hidden);
    } else {
      pool_.ForEach(stripes, add);
    }
  }

  void AddColumns(int32_t first, int32_t last) {
    for (const Job& job : jobs()) {
      for (int32_t i = 0; i < job.num_rows; ++i) {
        const float weight = job.row_weights[i];
        const float* y = s_.y + int64_t{job.first + i} * sizes_.hidden;
        float* out = args_.out + int64_t{job.rows != nullptr ? job.rows[i] : i} * sizes_.hidden;
        for (int32_t k = first; k < last; ++k) out[k] += weight * y[k];
      }
    }
  }

  const LinearOps& linear_;
  const MoeArgs& args_;
  const Sizes& sizes_;
  const Scratch& s_;
  ThreadPool& pool_;
  Job jobs_[kMaxProducts];
  int num_jobs_ = 0;
  int32_t rows_ = 0;  // of the jobs
};

}  // namespace

size_t MoeWorkspaceBytes(const LinearOps& linear, const WorkspaceShape& shape) {
  if (shape.experts == 0) return 0;
  Carve carve(nullptr);
  Scratch(linear,
          {shape.max_rows, shape.hidden, shape.experts, shape.top_k, shape.ffn, shape.raw_ffn,
           shape.threads},
          &carve);
  return carve.bytes();
}

void RunMoe(const LinearOps& linear, const MoeArgs& args, Workspace workspace, ThreadPool& pool) {
  if (args.num_rows == 0) return;
  Sizes sizes{.rows = args.num_rows,
              .hidden = args.router->weight.parts[0].cols,
              .experts = args.router->experts(),
              .top_k = args.router->top_k,
              .ffn = args.experts[0].down.parts[0].cols,
              .raw_ffn = 0,
              .threads = pool.size()};
  if (args.shared != nullptr) sizes.ffn = std::max(sizes.ffn, args.shared->down.parts[0].cols);
  if (!Fused(args.activation.kind)) sizes.raw_ffn = 2 * sizes.ffn;
  Carve carve(workspace.data);
  const Scratch scratch(linear, sizes, &carve);
  VIVACE_DCHECK(carve.bytes() <= workspace.bytes);
  Moe(linear, args, sizes, scratch, pool).Run();
}

}  // namespace vivace::kernels
