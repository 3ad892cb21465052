#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "base/limits.h"
#include "formats/tiny_llama.h"
#include "model/loaded_model.h"

namespace vivace::model {
namespace {

using formats::GgufFile;
using formats::GgufWriter;
using formats::MakeTinyLlama;
using formats::TinyLlamaOptions;
using ::testing::HasSubstr;

// Keeps the bytes a ModelFile looks at.
struct Opened {
  std::vector<std::byte> bytes;
  Result<ModelFile> model;
};

Result<ModelFile> Check(std::span<const std::byte> bytes) {
  VIVACE_ASSIGN(GgufFile file, GgufFile::Parse(bytes, "t.gguf"));
  return CheckModel(std::move(file));
}

Opened Open(const GgufWriter& writer) {
  auto bytes = writer.Build();
  auto model = Check(bytes);
  return {std::move(bytes), std::move(model)};
}

// What is wrong with the model, as "reason field"; "" if nothing.
std::string Fault(const GgufWriter& writer) {
  const Opened opened = Open(writer);
  if (opened.model) return "";
  const Error& error = opened.model.error();
  EXPECT_THAT(error.message, ::testing::StartsWith("t.gguf: " + error.field));
  return error.reason + " " + error.field;
}

std::string FaultAfter(const std::function<void(GgufWriter&)>& change) {
  GgufWriter writer = MakeTinyLlama();
  change(writer);
  return Fault(writer);
}

// ---- what is built ------------------------------------------------------------------------------

TEST(Llama, BuildsTheSpec) {
  const Opened opened = Open(MakeTinyLlama());
  ASSERT_TRUE(opened.model) << opened.model.error().message;
  const ModelSpec& spec = opened.model->spec();
  EXPECT_EQ(spec.architecture, "llama");
  EXPECT_EQ(spec.name, "tiny llama");
  EXPECT_EQ(spec.vocab, 264);
  EXPECT_EQ(spec.hidden, 64);
  EXPECT_EQ(spec.context, 256);
  EXPECT_FLOAT_EQ(spec.final_norm.eps, 1e-5f);
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.lm_head.weight.name, "token_embd.weight");
  EXPECT_TRUE(spec.notes.empty());
  ASSERT_EQ(spec.layers.size(), 2u);
  const AttentionSpec& a = spec.layers[1].attention;
  EXPECT_EQ(a.heads, 4);
  EXPECT_EQ(a.kv_heads, 2);
  EXPECT_EQ(a.head_dim, 16);
  EXPECT_FLOAT_EQ(a.scale, 0.25f);
  EXPECT_EQ(a.k.weight.name, "blk.1.attn_k.weight");
  EXPECT_EQ(a.k.weight.rows, 32);
  EXPECT_EQ(a.k.weight.cols, 64);
  EXPECT_FALSE(a.q.bias.present());
  EXPECT_FALSE(a.q_norm.present());
  EXPECT_TRUE(a.rope.interleaved);
  EXPECT_EQ(a.rope.dims, 16);
  EXPECT_EQ(a.rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(spec.layers[1].mlp.dense.down.weight.rows, 64);
  EXPECT_EQ(spec.layers[1].mlp.dense.down.weight.cols, 128);
}

TEST(Llama, HandsOutWeights) {
  GgufWriter writer = MakeTinyLlama({.matrices = DType::kQ4_1, .embedding = DType::kQ8_0});
  const Opened opened = Open(writer);
  ASSERT_TRUE(opened.model) << opened.model.error().message;
  const ModelFile& model = *opened.model;
  uint64_t bytes = 0;
  for (const auto& tensor : writer.tensors) bytes += tensor.data.size();
  EXPECT_EQ(model.weight_bytes(), bytes);
  EXPECT_EQ(model.parameters(),
            264u * 64 + 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128));
  const auto view = model.Weight(model.spec().layers[0].attention.q.weight);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->dtype, DType::kQ4_1);
  EXPECT_EQ(view->rows, 64);
  const auto& source = writer.FindTensor("blk.0.attn_q.weight")->data;
  EXPECT_EQ(std::memcmp(view->data, source.data(), source.size()), 0);
  EXPECT_EQ(model.Weight({"nosuch", 1, 1}).error().reason, "missing_tensor");
  EXPECT_EQ(model.Weight({"blk.0.attn_q.weight", 64, 63}).error().reason, "shape_mismatch");
}

TEST(Llama, TakesEverySupportedWeightType) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                           DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ3_K, DType::kQ4_K,
                           DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL}) {
    const Opened opened = Open(MakeTinyLlama(
        {.layers = 1, .hidden = 256, .ffn = 256, .matrices = type, .embedding = type}));
    ASSERT_TRUE(opened.model) << opened.model.error().message;
    EXPECT_EQ(opened.model->Weight(opened.model->spec().embedding)->dtype, type);
  }
}

TEST(Llama, RefusesOtherWeightTypesByName) {
  GgufWriter writer = MakeTinyLlama({.layers = 1, .hidden = 256, .ffn = 256});
  auto* tensor = writer.FindTensor("blk.0.ffn_up.weight");
  const uint32_t nvfp4 = 40;
  tensor->type_id = nvfp4;
  tensor->data.resize(256 * 4 * 36);
  const Opened opened = Open(writer);
  ASSERT_FALSE(opened.model);
  EXPECT_EQ(opened.model.error().reason, "unsupported_type");
  EXPECT_THAT(opened.model.error().message, HasSubstr("NVFP4"));
}

TEST(Llama, TiedEmbeddingsInAllShapes) {
  // Absent: the embedding is the head.
  EXPECT_TRUE(Open(MakeTinyLlama({.tied = true})).model->spec().tied_embeddings);
  // Present and equal, and present and different: the head of the file is used.
  for (const bool equal : {true, false}) {
    GgufWriter writer = MakeTinyLlama({.tied = false});
    if (equal) {
      writer.FindTensor("output.weight")->data = writer.FindTensor("token_embd.weight")->data;
    }
    const Opened opened = Open(writer);
    ASSERT_TRUE(opened.model) << opened.model.error().message;
    EXPECT_FALSE(opened.model->spec().tied_embeddings);
    EXPECT_EQ(opened.model->spec().lm_head.weight.name, "output.weight");
  }
}

TEST(Llama, TakesBiasesWhereTheFileHasThem) {
  const Opened opened = Open(MakeTinyLlama({.biases = true}));
  ASSERT_TRUE(opened.model) << opened.model.error().message;
  const LayerSpec& layer = opened.model->spec().layers[0];
  EXPECT_EQ(layer.attention.q.bias.cols, 64);
  EXPECT_EQ(layer.attention.v.bias.cols, 32);
  EXPECT_EQ(layer.attention.o.bias.name, "blk.0.attn_output.bias");
  EXPECT_EQ(layer.mlp.dense.gate.bias.cols, 128);
  EXPECT_EQ(layer.mlp.dense.down.bias.cols, 64);
  EXPECT_EQ(FaultAfter([](GgufWriter& w) {
              w = MakeTinyLlama({.biases = true});
              w.FindTensor("blk.1.attn_k.bias")->dims = {16};
              w.FindTensor("blk.1.attn_k.bias")->data.resize(64);
            }),
            "shape_mismatch blk.1.attn_k.bias");
}

TEST(Llama, TakesAHeadWidthOfItsOwn) {
  const Opened opened = Open(MakeTinyLlama({.head_dim = 32}));
  ASSERT_TRUE(opened.model) << opened.model.error().message;
  const AttentionSpec& a = opened.model->spec().layers[0].attention;
  EXPECT_EQ(a.head_dim, 32);
  EXPECT_EQ(a.q.weight.rows, 128);
  EXPECT_EQ(a.o.weight.cols, 128);
  EXPECT_EQ(a.rope.dims, 32);
}

// ---- RoPE ---------------------------------------------------------------------------------------

RopeSpec RopeAfter(const std::function<void(GgufWriter&)>& change) {
  GgufWriter writer = MakeTinyLlama();
  change(writer);
  const Opened opened = Open(writer);
  EXPECT_TRUE(opened.model) << opened.model.error().message;
  return opened.model ? opened.model->spec().layers[0].attention.rope : RopeSpec{};
}

TEST(LlamaRope, ReadsEveryKind) {
  RopeSpec rope = RopeAfter([](GgufWriter& w) {
    w.SetString("llama.rope.scaling.type", "linear");
    w.SetFloat("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(rope.factor, 4.0f);

  rope = RopeAfter([](GgufWriter& w) { w.SetFloat("llama.rope.scale_linear", 2.0f); });
  EXPECT_EQ(rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(rope.factor, 2.0f);

  rope = RopeAfter([](GgufWriter& w) {
    w.SetString("llama.rope.scaling.type", "none");
    w.SetFloat("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(rope.factor, 1.0f);

  rope = RopeAfter([](GgufWriter& w) {
    w.SetString("llama.rope.scaling.type", "yarn");
    w.SetFloat("llama.rope.scaling.factor", 16.0f);
    w.SetU32("llama.rope.scaling.original_context_length", 4096);
    w.SetFloat("llama.rope.scaling.yarn_beta_fast", 16.0f);
    w.SetFloat("llama.rope.scaling.attn_factor", 2.0f);
  });
  EXPECT_EQ(rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(rope.original_context, 4096);
  EXPECT_EQ(rope.beta_fast, 16.0f);
  EXPECT_EQ(rope.beta_slow, 1.0f);
  EXPECT_FLOAT_EQ(rope.attention_factor, 2.0f * (0.1f * std::log(16.0f) + 1.0f));

  rope = RopeAfter([](GgufWriter& w) {
    w.SetString("llama.rope.scaling.type", "llama3");
    w.SetFloat("llama.rope.scaling.factor", 8.0f);
    w.SetFloat("llama.rope.scaling.high_freq_factor", 5.0f);
    w.SetU32("llama.rope.scaling.original_context_length", 8192);
  });
  EXPECT_EQ(rope.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(rope.high_freq_factor, 5.0f);
}

GgufWriter WithRopeFreqs(std::vector<float> divisors) {
  GgufWriter writer = MakeTinyLlama();
  std::vector<std::byte> data(divisors.size() * sizeof(float));
  std::memcpy(data.data(), divisors.data(), data.size());
  writer.tensors.push_back({"rope_freqs.weight", 0, {divisors.size()}, std::move(data)});
  return writer;
}

TEST(LlamaRope, ReadsDivisors) {
  const Opened opened = Open(WithRopeFreqs({1, 1, 1, 1, 2, 4, 8, 8}));
  ASSERT_TRUE(opened.model) << opened.model.error().message;
  EXPECT_THAT(opened.model->spec().layers[1].attention.rope.freq_divisors,
              ::testing::ElementsAre(1, 1, 1, 1, 2, 4, 8, 8));
  EXPECT_EQ(Fault(WithRopeFreqs({1, 1, 1, 1, 2, 4, 8})), "shape_mismatch rope_freqs.weight");
  EXPECT_EQ(Fault(WithRopeFreqs({1, 1, 1, 1, 2, 4, 8, 0})), "hparam_range rope_freqs.weight");
  EXPECT_EQ(Fault(WithRopeFreqs({1, 1, 1, 1, 2, 4, 8, NAN})), "hparam_range rope_freqs.weight");
}

TEST(LlamaRope, RefusesNonsense) {
  const auto scaling = [](const char* type, const char* key, float value) {
    return FaultAfter([=](GgufWriter& w) {
      w.SetString("llama.rope.scaling.type", type);
      w.SetFloat(std::string("llama.rope.scaling.") + key, value);
    });
  };
  EXPECT_EQ(scaling("ntk-by-parts", "factor", 2), "unsupported llama.rope.scaling.type");
  EXPECT_EQ(scaling("longrope", "factor", 2), "missing_key llama.rope.scaling.short_factor");
  EXPECT_EQ(scaling("linear", "factor", 0), "hparam_range llama.rope.scaling.factor");
  EXPECT_EQ(scaling("linear", "factor", NAN), "hparam_range llama.rope.scaling.factor");
  EXPECT_EQ(scaling("yarn", "yarn_beta_slow", 64),
            "hparam_range llama.rope.scaling.yarn_beta_slow");
  EXPECT_EQ(scaling("yarn", "yarn_attn_factor", -1),
            "hparam_range llama.rope.scaling.yarn_attn_factor");
  EXPECT_EQ(scaling("llama3", "low_freq_factor", 4),
            "hparam_range llama.rope.scaling.low_freq_factor");
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(LlamaRefuses, MissingKeysByName) {
  for (const std::string key :
       {"general.architecture", "llama.block_count", "llama.context_length",
        "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.tokens"}) {
    EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.Remove(key); }), "missing_key " + key);
  }
}

TEST(LlamaRefuses, NothingThatIsOptional) {
  for (const std::string key : {"llama.rope.freq_base", "llama.rope.dimension_count",
                                "llama.vocab_size", "general.name", "tokenizer.chat_template"}) {
    EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.Remove(key); }), "") << key;
  }
  // Absent, kv heads are as many as heads: then this file's k is of another shape.
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.Remove("llama.attention.head_count_kv"); }),
            "shape_mismatch blk.0.attn_k.weight");
  GgufWriter no_base = MakeTinyLlama();
  no_base.Remove("llama.rope.freq_base");
  const Opened opened = Open(no_base);
  EXPECT_EQ(opened.model->spec().layers[0].attention.rope.theta, 10000.0f);
  EXPECT_THAT(opened.model->spec().notes, ::testing::ElementsAre(HasSubstr("rope.freq_base")));
}

TEST(LlamaRefuses, IntegersOutOfRange) {
  struct Case {
    std::string key;
    uint64_t value;
  };
  const Case cases[] = {
      {"block_count", 0},
      {"block_count", UINT32_MAX},
      {"block_count", uint64_t{limits::kMaxLayers} + 1},
      {"embedding_length", 0},
      {"embedding_length", UINT64_MAX},
      {"attention.head_count", 0},
      {"attention.head_count", 5},
      {"attention.head_count", UINT32_MAX},
      {"attention.head_count_kv", 0},
      {"attention.head_count_kv", 3},
      {"attention.head_count_kv", 8},
      {"feed_forward_length", 0},
      {"feed_forward_length", uint64_t{limits::kMaxFfn} + 1},
      {"context_length", 0},
      {"context_length", 1ull << 32},
      {"attention.key_length", 0},
      {"rope.dimension_count", 0},
      {"rope.dimension_count", 15},
      {"rope.dimension_count", 18},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.SetU64("llama." + c.key, c.value); }),
              "hparam_range llama." + c.key)
        << c.value;
  }
  // What is in its range is only not what the tensors say.
  EXPECT_EQ(FaultAfter([](GgufWriter& w) {
              w.SetU64("llama.feed_forward_length", uint64_t{limits::kMaxFfn});
            }),
            "shape_mismatch blk.0.ffn_gate.weight");
  // Messages carry the value.
  GgufWriter writer = MakeTinyLlama();
  writer.SetU32("llama.block_count", 4'000'000'000u);
  EXPECT_THAT(Open(writer).model.error().message, HasSubstr("4000000000"));
}

// Some files have a number for each layer.
TEST(Llama, TakesANumberThatLayersShare) {
  const auto after = [](std::vector<int32_t> numbers) {
    return FaultAfter([&](GgufWriter& w) { w.SetInts("llama.attention.head_count_kv", numbers); });
  };
  EXPECT_EQ(after({2, 2}), "");
  EXPECT_EQ(after({0, 2}), "") << "0 is for a layer that has none; the tensors say whether it does";
  EXPECT_EQ(after({2, 4}), "unsupported llama.attention.head_count_kv");
  EXPECT_EQ(after({0, 0}), "hparam_range llama.attention.head_count_kv");
  EXPECT_EQ(after({-2, -2}), "hparam_range llama.attention.head_count_kv");
}

TEST(LlamaRefuses, FloatsOutOfRange) {
  for (const float value : {0.0f, -1.0f, NAN, INFINITY}) {
    for (const std::string key :
         {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"}) {
      EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.SetFloat(key, value); }), "hparam_range " + key)
          << value;
    }
  }
}

TEST(LlamaRefuses, WrongTypes) {
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetString("llama.embedding_length", "64"); }),
            "wrong_type llama.embedding_length");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetFloat("llama.block_count", 2); }),
            "wrong_type llama.block_count");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetU32("general.architecture", 1); }),
            "wrong_type general.architecture");
  const std::vector<int32_t> ints = {1, 2, 3};
  EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.SetInts("tokenizer.ggml.tokens", ints); }),
            "wrong_type tokenizer.ggml.tokens");
}

TEST(LlamaRefuses, VocabulariesThatDisagree) {
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetStrings("tokenizer.ggml.tokens", {}); }),
            "vocab_mismatch tokenizer.ggml.tokens");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetU32("llama.vocab_size", 265); }),
            "vocab_mismatch llama.vocab_size");
  const std::vector<int32_t> types = {1, 2, 3};
  EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.SetInts("tokenizer.ggml.token_type", types); }),
            "vocab_mismatch tokenizer.ggml.token_type");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) {
              auto* table = w.FindTensor("token_embd.weight");
              table->dims[1] = 16;
              table->data.resize(16 * 64 * 4);
            }),
            "shape_mismatch token_embd.weight");
}

TEST(LlamaRefuses, TensorsMissingTransposedOrUnknown) {
  for (const auto& tensor : MakeTinyLlama().tensors) {
    EXPECT_EQ(FaultAfter([&](GgufWriter& w) { w.RemoveTensor(tensor.name); }),
              "missing_tensor " + tensor.name);
  }
  GgufWriter writer = MakeTinyLlama();
  auto* k = writer.FindTensor("blk.0.attn_k.weight");
  std::swap(k->dims[0], k->dims[1]);
  const Opened opened = Open(writer);
  ASSERT_FALSE(opened.model);
  EXPECT_EQ(opened.model.error().reason, "shape_mismatch");
  EXPECT_THAT(opened.model.error().message, HasSubstr("[64, 32]"));
  EXPECT_THAT(opened.model.error().message, HasSubstr("[32, 64]"));
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetU32("llama.block_count", 3); }),
            "missing_tensor blk.2.attn_norm.weight");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetU32("llama.block_count", 1); }),
            "unexpected_tensor blk.1.attn_norm.weight");
}

TEST(LlamaRefuses, OtherModels) {
  GgufWriter writer = MakeTinyLlama();
  writer.SetString("general.architecture", "nosuch");
  const Opened opened = Open(writer);
  ASSERT_FALSE(opened.model);
  EXPECT_EQ(opened.model.error().reason, "unknown_architecture");
  EXPECT_THAT(opened.model.error().message, HasSubstr("nosuch"));
  EXPECT_THAT(opened.model.error().message, HasSubstr("llama"));
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetString("general.type", "adapter"); }),
            "unsupported general.type");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetU32("split.count", 2); }),
            "unsupported split.count");
  EXPECT_EQ(FaultAfter([](GgufWriter& w) { w.SetU32("llama.expert_count", 8); }),
            "missing_key llama.expert_used_count");
}

TEST(Llama, ClaimedContextIsOnlyANumber) {
  GgufWriter writer = MakeTinyLlama();
  writer.SetU32("llama.context_length", UINT32_MAX);
  const Opened opened = Open(writer);
  ASSERT_TRUE(opened.model) << opened.model.error().message;
  EXPECT_EQ(opened.model->spec().context, INT32_MAX);
  writer.SetU64("llama.context_length", 8192);
  EXPECT_EQ(Fault(writer), "");
}

}  // namespace
}  // namespace vivace::model
