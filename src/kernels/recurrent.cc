#include "kernels/recurrent.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/project_rows.h"
#include "kernels/row_ops.h"

namespace vivace::kernels {
namespace {

// Less work than this is done before another thread could help: channels of rows, values of S.
constexpr int64_t kMinParallelChannels = 4096;
constexpr int64_t kMinParallelValues = 16384;

template <typename Body>
void ForItems(int64_t items, bool parallel, ThreadPool& pool, const Body& body) {
  if (parallel) return pool.ForEach(items, body);
  for (int64_t i = 0; i < items; ++i) body(i);
}

// The channels of the convolution and where they stand in a projected row, in pieces.
class ConvPieces {
 public:
  struct Piece {
    int32_t channel, column, channels;
  };

  explicit ConvPieces(const RecurrentArgs& args) {
    const RecurrentGeometry& g = args.geometry;
    const int32_t values = g.inner() / g.key_heads;  // of a key head
    const bool values_first = g.kind == RecurrentKind::kMamba2;
    if (values_first) Add(args.v, values, g);
    Add(values_first ? args.k : args.q, g.key_dim, g);
    Add(values_first ? args.q : args.k, g.key_dim, g);
    if (!values_first) Add(args.v, values, g);
  }

  int64_t size() const { return count_; }

  Piece operator[](int64_t i) const {
    const Section* section = sections_;
    while (i >= section->end) ++section;
    const auto at = static_cast<int32_t>(i - section->begin);
    const int32_t head = at / section->pieces;
    const int32_t first = at % section->pieces * kMaxConvChannels;
    return {section->channel + head * section->channels + first,
            section->columns.first + head * section->columns.stride + first,
            std::min(kMaxConvChannels, section->channels - first)};
  }

 private:
  struct Section {
    HeadColumns columns;
    int32_t channel;
    int32_t channels, pieces;  // of a key head
    int64_t begin, end;        // pieces
  };

  void Add(const HeadColumns& columns, int32_t channels, const RecurrentGeometry& geometry) {
    const int32_t pieces = (channels + kMaxConvChannels - 1) / kMaxConvChannels;
    const int64_t begin = count_;
    count_ += int64_t{geometry.key_heads} * pieces;
    sections_[num_sections_++] = {columns, channel_, channels, pieces, begin, count_};
    channel_ += geometry.key_heads * channels;
  }

  Section sections_[3];
  int num_sections_ = 0;
  int32_t channel_ = 0;
  int64_t count_ = 0;
};

// Less leaves nothing of S that counts, but numbers so small that processors are slow with them.
constexpr float kLeastDecay = 0x1p-64f;

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

class Layer {
 public:
  Layer(const RecurrentKernels& kernels, const RecurrentArgs& args, const ProjectedRows& projected,
        ThreadPool& pool)
      : kernels_(kernels),
        args_(args),
        geometry_(args.geometry),
        projected_(projected),
        pool_(pool) {}

  void Run() {
    ConvolveAll();
    if (geometry_.kind == RecurrentKind::kShortConv) return;
    AdvanceAll();
    if (geometry_.kind == RecurrentKind::kMamba2 && args_.out_norm.present()) {
      NormRows(args_.out_norm, args_.out, geometry_.inner(), nullptr, args_.step.num_rows,
               geometry_.inner(), args_.out, pool_);
    }
  }

 private:
  void ConvolveAll() const {
    const ConvPieces pieces(args_);
    const int64_t channels = int64_t{args_.step.num_rows} * geometry_.conv_channels();
    ForItems(
        num_sequences() * pieces.size(), channels >= kMinParallelChannels, pool_,
        [&](int64_t i) { Convolve(SequenceAt(i / pieces.size()), pieces[i % pieces.size()]); });
  }
  void AdvanceAll() const {
    const int64_t heads = geometry_.heads;
    const int64_t values = args_.step.num_rows * heads * geometry_.head_floats();
    ForItems(num_sequences() * heads, values >= kMinParallelValues, pool_,
             [&](int64_t i) { Advance(SequenceAt(i / heads), static_cast<int32_t>(i % heads)); });
  }

  int64_t num_sequences() const { return static_cast<int64_t>(args_.step.sequences.size()); }
  const SequenceRows& SequenceAt(int64_t i) const {
    return args_.step.sequences[static_cast<size_t>(i)];
  }
  float* StateOf(const SequenceRows& sequence) const {
    return args_.states + sequence.slot * geometry_.state_floats();
  }

  void Convolve(const SequenceRows& sequence, const ConvPieces::Piece& piece) const {
    float* const row = projected_.data + sequence.first_row * projected_.stride;
    const int64_t channels = geometry_.conv_channels();
    ConvChannels conv{
        .rows = sequence.num_rows,
        .channels = piece.channels,
        .width = geometry_.conv_width,
        .stride = projected_.stride,
        .tap_stride = channels,
        .x = row + piece.column,
        .weight = args_.conv_weight + piece.channel,
        .bias = args_.conv_bias != nullptr ? args_.conv_bias + piece.channel : nullptr,
        .state = StateOf(sequence) + piece.channel};
    if (geometry_.kind == RecurrentKind::kShortConv) {
      conv.b = row + args_.b.first + piece.channel;
      conv.c = row + args_.z.first + piece.channel;
      conv.out = args_.out + sequence.first_row * channels + piece.channel;
      conv.out_stride = channels;
    }
    if (sequence.first_position == 0) {
      for (int32_t tap = 0; tap + 1 < conv.width; ++tap) {
        std::fill_n(conv.state + tap * channels, piece.channels, 0.0f);
      }
    }
    kernels_.convolve(conv);
  }

  TokenGates GatesOf(int32_t head, float b, float a) const {
    const bool delta = geometry_.kind == RecurrentKind::kGatedDelta;
    float dt = Softplus(a + args_.dt_bias[head]);
    if (!delta) dt = std::clamp(dt, args_.min_dt, args_.max_dt);
    const float decay = std::exp(dt * args_.decay[head]);
    return {decay < kLeastDecay ? 0.0f : decay, delta ? Sigmoid(b) : dt};
  }

  // All of the sequence's rows in one value head.
  void Advance(const SequenceRows& sequence, int32_t head) const {
    const RecurrentGeometry& g = geometry_;
    const int32_t share = g.heads / g.key_heads;
    const int32_t key_head = head / share, value = head % share;
    const auto column = [&](const HeadColumns& columns, int32_t offset) {
      return columns.first + key_head * columns.stride + offset;
    };
    const int32_t a = column(args_.a, value), b = column(args_.b, value);
    TokenGates gates[kRunTokens];
    HeadRun run{.kind = g.kind,
                .tokens = 0,
                .key_dim = g.key_dim,
                .value_dim = g.value_dim,
                .stride = projected_.stride,
                .q = nullptr,
                .k = nullptr,
                .v = nullptr,
                .z = nullptr,
                .gates = gates,
                .norm = args_.out_norm,
                .skip = args_.skip != nullptr ? args_.skip[head] : 0.0f,
                .state = StateOf(sequence) + g.conv_floats() + head * g.head_floats(),
                .out = nullptr,
                .out_stride = g.inner()};
    if (sequence.first_position == 0) std::fill_n(run.state, g.head_floats(), 0.0f);
    for (int32_t done = 0; done < sequence.num_rows; done += run.tokens) {
      const int64_t first = sequence.first_row + done;
      const float* const row = projected_.data + first * projected_.stride;
      run.tokens = std::min(kRunTokens, sequence.num_rows - done);
      for (int32_t t = 0; t < run.tokens; ++t) {
        const float* const token = row + t * projected_.stride;
        gates[t] = GatesOf(head, token[b], token[a]);
      }
      run.q = row + column(args_.q, 0);
      run.k = row + column(args_.k, 0);
      run.v = row + column(args_.v, value * g.value_dim);
      run.z = row + column(args_.z, value * g.value_dim);
      run.out = args_.out + first * g.inner() + head * g.value_dim;
      kernels_.advance(run);
    }
  }

  const RecurrentKernels& kernels_;
  const RecurrentArgs& args_;
  const RecurrentGeometry& geometry_;
  const ProjectedRows projected_;
  ThreadPool& pool_;
};

}  // namespace

size_t RecurrentWorkspaceBytes(const LinearOps& linear, const WorkspaceShape& shape) {
  if (shape.recurrent_outputs == 0) return 0;
  return ProjectRowsBytes(linear, shape.max_rows, shape.hidden, shape.recurrent_outputs,
                          shape.threads);
}

void RunRecurrent(const LinearOps& linear, const RecurrentKernels& kernels,
                  const RecurrentArgs& args, Workspace workspace, ThreadPool& pool) {
  if (args.step.num_rows == 0) return;
  VIVACE_DCHECK(args.geometry.key_dim <= RecurrentGeometry::kMaxKeyDim);
  VIVACE_DCHECK(args.geometry.conv_width >= 2 &&
                args.geometry.conv_width <= RecurrentGeometry::kMaxConvWidth);
  const ProjectedRows projected =
      ProjectRows(linear, args.x, args.step.num_rows, args.norm, *args.input, workspace, pool);
  Layer(kernels, args, projected, pool).Run();
}

}  // namespace vivace::kernels
