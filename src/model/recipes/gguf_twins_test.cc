// Each small model as a GGUF file (tests/oracles/hf_to_gguf.py writes it, as llama.cpp's converters
// do) must be the same model as its Hugging Face folder: every weight equal, every number equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "model/loaded_model.h"
#include "model/rope.h"
#include "support/paths.h"

namespace vivace::model {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = vivace::testing::SourceDir();
const fs::path kTiny = kSource / "../shared/models/tiny";

// A Python with gguf and numpy; empty: none here.
std::string Python() {
  for (const std::string& python :
       {(kSource / ".venv/bin/python").string(), std::string("python3")}) {
    if (std::system((python + " -c 'import gguf, numpy' 2>/dev/null").c_str()) == 0) return python;
  }
  return "";
}

std::vector<float> Values(const ModelFile& model, const WeightSpec& weight) {
  if (!weight.present()) return {};
  std::vector<float> values(static_cast<size_t>(weight.rows) * static_cast<size_t>(weight.cols));
  const Status read = model.ReadVector(weight, values.data());
  EXPECT_TRUE(read) << read.error().message;
  return values;
}

// Rows of heads whose pairs lie side by side, as rows whose pairs lie half a rotation apart.
std::vector<float> Unpaired(const std::vector<float>& values, int32_t head_dim, int32_t cols) {
  std::vector<float> out = values;
  const auto width = static_cast<size_t>(cols);
  for (size_t row = 0; row < values.size() / width; ++row) {
    const auto dim = static_cast<int32_t>(row) % head_dim;
    const size_t head = row - static_cast<size_t>(dim);
    const size_t from =
        head + static_cast<size_t>(dim < head_dim / 2 ? 2 * dim : 2 * dim - head_dim + 1);
    std::copy_n(values.begin() + static_cast<int64_t>(from * width), width,
                out.begin() + static_cast<int64_t>(row * width));
  }
  return out;
}

class Twins {
 public:
  Twins(const ModelFile& hf, const ModelFile& gguf) : hf_(hf), gguf_(gguf) {}

  void Compare() {
    const ModelSpec &a = hf_.spec(), &b = gguf_.spec();
    EXPECT_EQ(a.vocab, b.vocab);
    EXPECT_EQ(a.context, b.context);
    EXPECT_EQ(a.embedding_scale, b.embedding_scale);
    EXPECT_EQ(a.residual_scale, b.residual_scale);
    EXPECT_EQ(a.logit_softcap, b.logit_softcap);
    EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
    Same("embedding", a.embedding, b.embedding);
    Same("lm_head", a.lm_head.weight, b.lm_head.weight);
    Norm("final_norm", a.final_norm, b.final_norm);
    ASSERT_EQ(a.layers.size(), b.layers.size());
    for (size_t i = 0; i < a.layers.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "layer " << i);
      EXPECT_EQ(a.layers[i].parallel, b.layers[i].parallel);
      Attention(a.layers[i].attention, b.layers[i].attention);
      ASSERT_EQ(a.layers[i].recurrent.has_value(), b.layers[i].recurrent.has_value());
      if (a.layers[i].recurrent) Recurrent(*a.layers[i].recurrent, *b.layers[i].recurrent);
      Mlp(a.layers[i].mlp, b.layers[i].mlp);
    }
  }

 private:
  void Near(const char* what, const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6) << what << " " << i;
  }
  void Same(const char* what, const WeightSpec& a, const WeightSpec& b) {
    Near(what, Values(hf_, a), Values(gguf_, b));
  }
  void Linear(const char* what, const LinearSpec& a, const LinearSpec& b) {
    Same(what, a.weight, b.weight);
    Same(what, a.bias, b.bias);
  }
  void Norm(const char* what, const NormSpec& a, const NormSpec& b) {
    EXPECT_EQ(a.kind, b.kind) << what;
    if (a.present()) {
      EXPECT_FLOAT_EQ(a.eps, b.eps) << what;
    }
    Same(what, a.weight, b.weight);
    Same(what, a.bias, b.bias);
  }

  void Rotated(const char* what, const WeightSpec& x, const AttentionSpec& b, const WeightSpec& y) {
    std::vector<float> values = Values(gguf_, y);
    if (!y.present() || !paired()) {
      return Near(what, Values(hf_, x), values);
    }
    Near(what, Values(hf_, x), Unpaired(values, b.head_dim, y.rows == 1 ? 1 : y.cols));
  }

  // Layers without RoPE have the rows of the others.
  bool paired() const {
    return hf_.spec().first_attention().rope.interleaved !=
           gguf_.spec().first_attention().rope.interleaved;
  }

  void Rope(const RopeSpec& a, const RopeSpec& b) {
    EXPECT_EQ(a.dims, b.dims);
    EXPECT_EQ(a.theta, b.theta);
    for (const int64_t tokens : {int64_t{0}, a.original_context + int64_t{1}}) {
      const auto x = InverseFrequencies(a, tokens), y = InverseFrequencies(b, tokens);
      ASSERT_EQ(x.size(), y.size());
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i] / y[i], 1.0, 1e-6) << i;
    }
    EXPECT_NEAR(AttentionFactor(a), AttentionFactor(b), 1e-6);
    // Llama 3's scaling is divisors there.
    if (b.freq_divisors.empty()) {
      EXPECT_EQ(a.scaling, b.scaling);
      EXPECT_EQ(a.truncate, b.truncate);
      EXPECT_EQ(a.factor, b.factor);
      EXPECT_EQ(a.original_context, b.original_context);
    }
  }

  void Attention(const AttentionSpec& a, const AttentionSpec& b) {
    EXPECT_EQ(a.heads, b.heads);
    EXPECT_EQ(a.kv_heads, b.kv_heads);
    EXPECT_EQ(a.head_dim, b.head_dim);
    EXPECT_FLOAT_EQ(a.scale, b.scale);
    EXPECT_EQ(a.softcap, b.softcap);
    EXPECT_EQ(a.window, b.window);
    EXPECT_EQ(a.qk_norm, b.qk_norm);
    Rope(a.rope, b.rope);
    Norm("norm", a.norm, b.norm);
    Norm("post_norm", a.post_norm, b.post_norm);
    Rotated("q", a.q.weight, b, b.q.weight);
    Rotated("k", a.k.weight, b, b.k.weight);
    Rotated("q bias", a.q.bias, b, b.q.bias);
    Rotated("k bias", a.k.bias, b, b.k.bias);
    Linear("v", a.v, b.v);
    Linear("gate", a.gate, b.gate);
    Linear("o", a.o, b.o);
    Norm("q_norm", a.q_norm, b.q_norm);
    Norm("k_norm", a.k_norm, b.k_norm);
    Same("sinks", a.sinks, b.sinks);
    ASSERT_EQ(a.latent.has_value(), b.latent.has_value());
    if (a.latent) Latent(*a.latent, *b.latent);
  }

  void Latent(const LatentSpec& a, const LatentSpec& b) {
    EXPECT_EQ(a.rank, b.rank);
    EXPECT_EQ(a.nope_dims, b.nope_dims);
    EXPECT_EQ(a.rope_dims, b.rope_dims);
    EXPECT_EQ(a.value_dims, b.value_dims);
    Linear("q_a", a.q_a, b.q_a);
    Norm("q_a_norm", a.q_norm, b.q_norm);
    Linear("q_b", a.q_b, b.q_b);
    Linear("kv_a", a.kv_a, b.kv_a);
    Norm("kv_norm", a.kv_norm, b.kv_norm);
    ASSERT_EQ(a.k_b.size(), b.k_b.size());
    for (size_t i = 0; i < a.k_b.size(); ++i) {
      Same("k_b", a.k_b[i], b.k_b[i]);
      Same("v_b", a.v_b[i], b.v_b[i]);
    }
  }

  // The rows of all projections, `count` of each key head: files have them in an order of their
  // own.
  std::vector<float> Columns(const ModelFile& file, const RecurrentSpec& spec,
                             const kernels::HeadColumns& at, int32_t count) {
    std::vector<float> rows, wanted;
    for (const LinearSpec& part : spec.input) {
      const std::vector<float> values = Values(file, part.weight);
      rows.insert(rows.end(), values.begin(), values.end());
    }
    const int64_t cols = spec.input.front().weight.cols;
    for (int32_t head = 0; head < spec.geometry.key_heads; ++head) {
      const auto first = rows.begin() + (at.first + int64_t{head} * at.stride) * cols;
      wanted.insert(wanted.end(), first, first + count * cols);
    }
    return wanted;
  }

  void Recurrent(const RecurrentSpec& a, const RecurrentSpec& b) {
    const kernels::RecurrentGeometry &x = a.geometry, &y = b.geometry;
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.heads, y.heads);
    EXPECT_EQ(x.key_heads, y.key_heads);
    EXPECT_EQ(x.key_dim, y.key_dim);
    EXPECT_EQ(x.value_dim, y.value_dim);
    EXPECT_EQ(x.conv_width, y.conv_width);
    EXPECT_EQ(a.min_dt, b.min_dt);
    EXPECT_EQ(a.max_dt, b.max_dt);
    const int32_t groups = x.key_heads, values = x.inner() / groups;
    const auto same = [&](const char* what, kernels::HeadColumns RecurrentSpec::*at,
                          int32_t count) {
      Near(what, Columns(hf_, a, a.*at, count), Columns(gguf_, b, b.*at, count));
    };
    using R = RecurrentSpec;
    same("columns of q", &R::q, x.key_dim);
    same("columns of k", &R::k, x.key_dim);
    same("columns of v", &R::v, values);
    same("columns of z", &R::z, values);
    same("columns of a", &R::a, x.heads / groups);
    same("columns of b", &R::b,
         x.kind == kernels::RecurrentKind::kShortConv ? values : x.heads / groups);
    Same("conv", a.conv_weight, b.conv_weight);
    Same("conv bias", a.conv_bias, b.conv_bias);
    Same("decay", a.decay, b.decay);
    Same("dt bias", a.dt_bias, b.dt_bias);
    Same("skip", a.skip, b.skip);
    Norm("out norm", a.out_norm, b.out_norm);
    Linear("recurrent o", a.o, b.o);
  }

  void FeedForward(const FeedForwardSpec& a, const FeedForwardSpec& b) {
    EXPECT_EQ(a.ffn, b.ffn);
    Linear("gate", a.gate, b.gate);
    Linear("up", a.up, b.up);
    Linear("down", a.down, b.down);
  }

  void Mlp(const MlpSpec& a, const MlpSpec& b) {
    EXPECT_EQ(a.activation, b.activation);
    EXPECT_EQ(a.activation_alpha, b.activation_alpha);
    EXPECT_EQ(a.activation_limit, b.activation_limit);
    Norm("mlp norm", a.norm, b.norm);
    Norm("mlp post_norm", a.post_norm, b.post_norm);
    FeedForward(a.dense, b.dense);
    ASSERT_EQ(a.moe.has_value(), b.moe.has_value());
    if (!a.moe) return;
    const RouterSpec &x = a.moe->router, &y = b.moe->router;
    EXPECT_EQ(x.score, y.score);
    EXPECT_EQ(x.top_k, y.top_k);
    EXPECT_EQ(x.groups, y.groups);
    EXPECT_EQ(x.top_groups, y.top_groups);
    EXPECT_EQ(x.group_score, y.group_score);
    EXPECT_EQ(x.normalize, y.normalize);
    EXPECT_EQ(x.scale, y.scale);
    Linear("router", x.weight, y.weight);
    Same("selection bias", x.selection_bias, y.selection_bias);
    FeedForward(a.moe->shared, b.moe->shared);
    Linear("shared gate", a.moe->shared_gate, b.moe->shared_gate);
    ASSERT_EQ(a.moe->experts.size(), b.moe->experts.size());
    for (size_t i = 0; i < a.moe->experts.size(); ++i) {
      FeedForward(a.moe->experts[i], b.moe->experts[i]);
    }
  }

  const ModelFile& hf_;
  const ModelFile& gguf_;
};

TEST(GgufTwins, AreTheSameModels) {
  if (!fs::exists(kTiny)) GTEST_SKIP() << "the models are not on this machine: " << kTiny;
  const std::string python = Python();
  if (python.empty()) GTEST_SKIP() << "no Python with gguf and numpy here (./dev test makes one)";
  const fs::path out = fs::path(::testing::TempDir()) / "vivace_gguf_twins_test.gguf";
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(kTiny)) {
    auto hf = OpenModel(entry.path().string());
    if (!hf) continue;  // recipes_test.cc says which may not open
    SCOPED_TRACE(entry.path().filename());
    const std::string command =
        fmt::format("{} {} {} {}", python, (kSource / "tests/oracles/hf_to_gguf.py").string(),
                    entry.path().string(), out.string());
    ASSERT_EQ(std::system(command.c_str()), 0);
    auto gguf = OpenModel(out.string());
    ASSERT_TRUE(gguf) << gguf.error().message;
    Twins(*hf, *gguf).Compare();
    ++compared;
  }
  fs::remove(out);
  EXPECT_EQ(compared, 23);
}

}  // namespace
}  // namespace vivace::model
