// Every recipe on a small model of its family as Hugging Face stores it, in both spellings of its
// configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "base/limits.h"
#include "formats/hf_folder.h"
#include "formats/safetensors_writer.h"
#include "model/loaded_model.h"
#include "model/recipe.h"
#include "model/recipes/list.h"
#include "model/testing/any_type.h"
#include "model/testing/tiny_folders.h"

namespace vivace::model {
namespace {

using ::testing::HasSubstr;

class Recipes : public TinyFolders {
 protected:
  // The spec of both spellings, which must agree.
  ModelSpec Spec(const std::string& name) {
    const ModelSpec spec = SpecAfter(name, [](json::object&) {});
    const auto old = Copy(name, Config(name, "config.v4.json")).Open();
    EXPECT_TRUE(old) << old.error().message;
    if (!old || old->spec().layers.size() != spec.layers.size()) {
      ADD_FAILURE() << name;
      return spec;
    }
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      const LayerSpec &a = spec.layers[i], &b = old->spec().layers[i];
      EXPECT_EQ(a.attention.rope, b.attention.rope) << name << " " << i;
      EXPECT_EQ(a.attention.window, b.attention.window) << name << " " << i;
      EXPECT_EQ(a.attention.scale, b.attention.scale) << name << " " << i;
      EXPECT_EQ(a.mlp.moe.has_value(), b.mlp.moe.has_value()) << name << " " << i;
    }
    return spec;
  }
  std::vector<int32_t> Windows(const ModelSpec& spec) {
    std::vector<int32_t> windows;
    for (const LayerSpec& layer : spec.layers) windows.push_back(layer.attention.window);
    return windows;
  }
  std::vector<int32_t> RopeDims(const ModelSpec& spec) {
    std::vector<int32_t> dims;
    for (const LayerSpec& layer : spec.layers) dims.push_back(layer.attention.rope.dims);
    return dims;
  }
};
using ::testing::ElementsAre;

TEST_F(Recipes, AllFamiliesOpen) {
  for (const auto& entry : fs::directory_iterator(kTiny)) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    auto model = OpenModel(entry.path().string());
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->spec().vocab, 512);
    EXPECT_EQ(model->spec().hidden, 64);
    EXPECT_EQ(model->spec().context, 512);
    EXPECT_THAT(model->eos_ids(), ElementsAre(2));
  }
}

TEST_F(Recipes, Llama) {
  const ModelSpec spec = Spec("llama");
  EXPECT_EQ(spec.architecture, "llama");
  EXPECT_FALSE(spec.tied_embeddings);
  const AttentionSpec& a = spec.layers[1].attention;
  EXPECT_EQ(a.q.weight.name, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(a.head_dim, 16);
  EXPECT_FALSE(a.rope.interleaved);
  EXPECT_EQ(a.rope.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(a.rope.factor, 8.0f);
  EXPECT_EQ(a.rope.original_context, 64);
}

TEST_F(Recipes, LlamaRopeOfOtherKinds) {
  const auto rope = [](const char* text) {
    return SpecAfter("llama", [&](json::object& c) { c["rope_parameters"] = json::parse(text); })
        .layers[0]
        .attention.rope;
  };
  RopeSpec r = rope(R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0})");
  EXPECT_EQ(r.scaling, RopeScaling::kLinear);
  EXPECT_EQ(r.factor, 4.0f);
  EXPECT_EQ(r.theta, 500.0f);
  r = rope(R"({"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0,
               "original_max_position_embeddings": 7})");
  EXPECT_EQ(r.scaling, RopeScaling::kDynamic);
  EXPECT_EQ(r.original_context, 512);
  r = rope(R"({"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "truncate": false,
               "original_max_position_embeddings": 128})");
  EXPECT_EQ(r.scaling, RopeScaling::kYarn);
  EXPECT_FALSE(r.truncate);
  EXPECT_FLOAT_EQ(r.attention_factor, 0.1f * std::log(4.0f) + 1.0f);
  r = rope(R"({"type": "yarn", "factor": 40.0, "mscale": 0.707, "mscale_all_dim": 1.0,
               "original_max_position_embeddings": 64})");
  EXPECT_FLOAT_EQ(r.attention_factor,
                  (0.0707f * std::log(40.0f) + 1.0f) / (0.1f * std::log(40.0f) + 1.0f));
  EXPECT_EQ(FaultAfter("llama",
                       [](json::object& c) {
                         c["rope_parameters"] = {{"rope_type", "spiral"}};
                       }),
            "unsupported rope_parameters.rope_type");
}

// The trained length times the factor; what was scaled already stays.
TEST_F(Recipes, ScalingOfRopeMakesTheContextLonger) {
  const auto contexts = [](const std::string& name, const char* text) {
    const ModelSpec spec =
        SpecAfter(name, [&](json::object& c) { c["rope_parameters"] = json::parse(text); });
    return std::pair(spec.context, spec.longest_context);
  };
  EXPECT_EQ(contexts("llama", R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4})"),
            std::pair(2048, 0));
  EXPECT_EQ(contexts("llama", R"({"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4})"),
            std::pair(512, 1024));
  EXPECT_EQ(contexts("llama", R"({"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4,
                                  "original_max_position_embeddings": 512})"),
            std::pair(2048, 0));
  EXPECT_EQ(contexts("llama", R"({"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4,
                                  "original_max_position_embeddings": 128})"),
            std::pair(512, 0));
  EXPECT_EQ(
      contexts("gemma3_text",
               R"({"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})"),
      std::pair(512, 0));
}

TEST_F(Recipes, Mistral) {
  const ModelSpec spec = Spec("mistral");
  EXPECT_THAT(Windows(spec), ElementsAre(32, 32, 32));
  EXPECT_EQ(spec.layers[0].attention.head_dim, 24);
  EXPECT_THAT(Windows(SpecAfter("mistral", [](json::object& c) { c["sliding_window"] = nullptr; })),
              ElementsAre(0, 0, 0));
}

TEST_F(Recipes, Mixtral) {
  const ModelSpec spec = Spec("mixtral");
  const MoeSpec& moe = *spec.layers[2].mlp.moe;
  EXPECT_EQ(moe.router.top_k, 2);
  EXPECT_TRUE(moe.router.normalize);
  EXPECT_TRUE(moe.router.weight.weight.full);
  ASSERT_EQ(moe.experts.size(), 4u);
  EXPECT_EQ(moe.experts[3].up.weight.name, "model.layers.2.block_sparse_moe.experts.3.w3.weight");
  EXPECT_FALSE(spec.layers[2].mlp.dense.present());
}

TEST_F(Recipes, Qwen) {
  EXPECT_EQ(Spec("qwen2").layers[0].attention.k.bias.cols, 32);
  EXPECT_TRUE(Spec("qwen2").tied_embeddings);
  const ModelSpec three = Spec("qwen3");
  EXPECT_EQ(three.layers[0].attention.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(three.layers[0].attention.q_norm.weight.cols, 32);
  const ModelSpec spec = SpecAfter("qwen2", [](json::object& c) {
    c["use_sliding_window"] = true;
    c["sliding_window"] = 16;
    c["max_window_layers"] = 2;
    c.erase("layer_types");
  });
  EXPECT_THAT(Windows(spec), ElementsAre(0, 0, 16));
}

TEST_F(Recipes, QwenMoe) {
  const ModelSpec two = Spec("qwen2_moe");
  const MoeSpec& moe = *two.layers[0].mlp.moe;
  EXPECT_FALSE(moe.router.normalize);
  EXPECT_EQ(moe.experts.size(), 8u);
  EXPECT_EQ(moe.shared.ffn, 96);
  EXPECT_EQ(moe.shared_gate.weight.rows, 1);
  for (const int64_t most : {28, 2}) {
    const ModelSpec spec = SpecAfter("qwen2_moe", [&](json::object& c) {
      c["use_sliding_window"] = true;
      c["sliding_window"] = 16;
      c["max_window_layers"] = most;
      c.erase("layer_types");
    });
    EXPECT_THAT(Windows(spec), ElementsAre(16, 0, most > 2 ? 16 : 0));
  }
  const ModelSpec three = Spec("qwen3_moe");
  EXPECT_TRUE(three.layers[0].mlp.moe->router.normalize);
  EXPECT_EQ(three.layers[0].mlp.moe->experts[7].ffn, 48);
  EXPECT_EQ(FaultAfter("qwen3_moe", [](json::object& c) { c["mlp_only_layers"] = {1}; }),
            "missing_tensor model.layers.1.mlp.gate_proj.weight");
  EXPECT_EQ(FaultAfter("qwen3_moe", [](json::object& c) { c["mlp_only_layers"] = {3}; }),
            "hparam_range mlp_only_layers");
}

TEST_F(Recipes, Gemma) {
  const ModelSpec two = Spec("gemma2");
  EXPECT_THAT(Windows(two), ElementsAre(32, 0, 32));
  EXPECT_EQ(two.embedding_scale, 8.0f);
  EXPECT_EQ(two.logit_softcap, 30.0f);
  const LayerSpec& layer = two.layers[1];
  EXPECT_EQ(layer.attention.softcap, 50.0f);
  EXPECT_FLOAT_EQ(layer.attention.scale, 0.25f);
  EXPECT_EQ(layer.attention.norm.weight.offset, 1.0f);
  EXPECT_EQ(layer.attention.post_norm.weight.name,
            "model.layers.1.post_attention_layernorm.weight");
  EXPECT_EQ(layer.mlp.norm.weight.name, "model.layers.1.pre_feedforward_layernorm.weight");
  EXPECT_EQ(layer.mlp.activation, kernels::Activation::kGeluTanh);
  const ModelSpec three = Spec("gemma3_text");
  EXPECT_THAT(Windows(three), ElementsAre(32, 32, 32, 32, 32, 0));
  EXPECT_EQ(three.layers[0].attention.rope.theta, 10000.0f);
  EXPECT_EQ(three.layers[5].attention.rope.theta, 1e6f);
  EXPECT_EQ(three.layers[5].attention.k_norm.weight.offset, 1.0f);
  EXPECT_EQ(three.layers[5].attention.softcap, 0.0f);
}

TEST_F(Recipes, Phi3) {
  const ModelSpec spec = Spec("phi3");
  const AttentionSpec& a = spec.layers[0].attention;
  EXPECT_EQ(a.q.weight.name, a.v.weight.name);
  EXPECT_EQ(a.k.weight.first_row, 64);
  EXPECT_EQ(a.v.weight.first_row, 96);
  EXPECT_EQ(a.v.weight.rows, 32);
  EXPECT_EQ(spec.layers[0].mlp.dense.up.weight.first_row, 160);
  const ModelSpec longer = SpecAfter("phi3", [](json::object& c) {
    c["rope_parameters"] = json::parse(
        R"({"rope_type": "longrope", "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
            "short_factor": [1, 1, 1.5, 2], "long_factor": [1, 2, 3, 4]})");
    c["original_max_position_embeddings"] = 128;
  });
  const RopeSpec& rope = longer.layers[0].attention.rope;
  EXPECT_EQ(rope.scaling, RopeScaling::kLongrope);
  EXPECT_EQ(rope.dims, 8);
  EXPECT_EQ(rope.factor, 4.0f);
  EXPECT_EQ(rope.original_context, 128);
  EXPECT_THAT(rope.long_divisors, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(FaultAfter("phi3",
                       [](json::object& c) {
                         c["rope_parameters"] = json::parse(
                             R"({"rope_type": "su", "short_factor": [1], "long_factor": [1]})");
                       }),
            "hparam_range rope_parameters.short_factor");
}

TEST_F(Recipes, Deepseek) {
  const ModelSpec two = Spec("deepseek_v2");
  const LatentSpec& latent = *two.layers[0].attention.latent;
  EXPECT_FALSE(latent.q_a.present());
  EXPECT_EQ(latent.rank, 16);
  EXPECT_EQ(latent.nope_dims, 16);
  EXPECT_EQ(latent.rope_dims, 8);
  ASSERT_EQ(latent.k_b.size(), 4u);
  EXPECT_TRUE(latent.k_b[3].transposed);
  EXPECT_EQ(latent.v_b[3].first_row, 3 * 32 + 16);
  EXPECT_TRUE(two.layers[0].mlp.dense.present());
  EXPECT_EQ(two.layers[1].mlp.moe->shared.ffn, 96);
  EXPECT_EQ(two.layers[1].mlp.moe->router.groups, 1);
  EXPECT_FLOAT_EQ(two.layers[0].attention.scale, 1.0f / std::sqrt(24.0f));
  EXPECT_TRUE(two.layers[0].attention.rope.interleaved);
  const ModelSpec three = Spec("deepseek_v3");
  const RouterSpec& router = three.layers[1].mlp.moe->router;
  EXPECT_EQ(router.score, kernels::RouterScore::kSigmoid);
  EXPECT_EQ(router.groups, 2);
  EXPECT_EQ(router.top_groups, 1);
  EXPECT_EQ(router.group_score, kernels::GroupScore::kSumOfTwo);
  EXPECT_TRUE(router.normalize);
  EXPECT_EQ(router.scale, 1.5f);
  EXPECT_EQ(router.selection_bias.cols, 8);
  EXPECT_EQ(three.layers[0].attention.latent->q_a.weight.rows, 24);
  const ModelSpec yarn = SpecAfter("deepseek_v3", [](json::object& c) {
    c["rope_parameters"] = json::parse(
        R"({"rope_type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 64, "rope_theta": 10000.0})");
  });
  const double mscale = 0.1 * std::log(40.0) + 1.0;
  EXPECT_FLOAT_EQ(yarn.layers[0].attention.scale,
                  static_cast<float>(mscale * mscale / std::sqrt(24.0)));
  EXPECT_FLOAT_EQ(yarn.layers[0].attention.rope.attention_factor, 1.0f);
  EXPECT_EQ(FaultAfter("deepseek_v3", [](json::object& c) { c["n_group"] = 3; }),
            "hparam_range n_group");
}

TEST_F(Recipes, GptOss) {
  const ModelSpec spec = Spec("gpt_oss");
  EXPECT_THAT(Windows(spec), ElementsAre(32, 0, 32));
  const LayerSpec& layer = spec.layers[0];
  EXPECT_EQ(layer.attention.sinks.cols, 4);
  EXPECT_EQ(layer.attention.rope.scaling, RopeScaling::kYarn);
  EXPECT_FALSE(layer.attention.rope.truncate);
  EXPECT_EQ(layer.mlp.activation, kernels::Activation::kSwigluClamped);
  EXPECT_EQ(layer.mlp.activation_limit, 7.0f);
  const FeedForwardSpec& expert = layer.mlp.moe->experts[2];
  EXPECT_TRUE(expert.up.weight.transposed);
  EXPECT_EQ(expert.up.weight.first_row, 1);
  EXPECT_EQ(expert.up.weight.row_stride, 2);
  EXPECT_EQ(expert.up.bias.rows, 160);
  EXPECT_EQ(layer.mlp.moe->router.score, kernels::RouterScore::kSoftmaxOfChosen);
}

// The experts as released checkpoints have them: blocks of FP4 and their scales apart.
TEST_F(Recipes, GptOssWithMxfp4Experts) {
  auto folder = formats::HfFolder::Open((kTiny / "gpt_oss").string());
  ASSERT_TRUE(folder);
  formats::SafetensorsWriter writer;
  std::mt19937 random(9);
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& tensor : folder->shards()[0].tensors()) {
    if (!tensor.name.ends_with("gate_up_proj") && !tensor.name.ends_with("down_proj")) {
      writer.tensors.push_back({tensor.name,
                                std::string(tensor.type->name),
                                tensor.shape,
                                {tensor.data.begin(), tensor.data.end()}});
      continue;
    }
    const uint64_t rows = tensor.shape[2], blocks = tensor.shape[1] / 32;
    for (const auto& [suffix, shape] :
         {std::pair<std::string, std::vector<uint64_t>>{"_blocks", {4, rows, blocks, 16}},
          {"_scales", {4, rows, blocks}}}) {
      auto& data = bytes[tensor.name + suffix];
      data.resize(4 * rows * blocks * (suffix == "_blocks" ? 16 : 1));
      for (std::byte& b : data) {
        b = static_cast<std::byte>(suffix == "_blocks" ? random() : 115 + random() % 10);
      }
      writer.tensors.push_back({tensor.name + suffix, "U8", shape, data});
    }
  }
  const Copy copy("gpt_oss", Config("gpt_oss"));
  fs::remove(copy.path() / "model.safetensors");
  ASSERT_TRUE(writer.WriteFile((copy.path() / "model.safetensors").string()));
  auto model = copy.Open();
  ASSERT_TRUE(model) << model.error().message;
  const WeightSpec& up = model->spec().layers[1].mlp.moe->experts[3].up.weight;
  std::vector<float> got(160 * 64);
  ASSERT_TRUE(model->ReadVector(up, got.data()));
  const std::string name = "model.layers.1.mlp.experts.gate_up_proj";
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t row = 3 * 320 + 2 * (i / 64) + 1, block = row * 2 + i % 64 / 32;
    const auto pair = static_cast<unsigned>(bytes[name + "_blocks"][block * 16 + i % 32 / 2]);
    constexpr float kValues[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const unsigned four = pair >> (4 * (i % 2)) & 15;
    const float want = std::ldexp(kValues[four & 7] * (four & 8 ? -1.0f : 1.0f),
                                  static_cast<int>(bytes[name + "_scales"][block]) - 127);
    ASSERT_EQ(got[i], want) << i;
  }
  EXPECT_EQ(model->WeightShape(up, AnyType())->dtype, DType::kMXFP4);
}

TEST_F(Recipes, NormsInOtherPlaces) {
  const ModelSpec olmo = Spec("olmo2");
  EXPECT_FALSE(olmo.layers[0].attention.norm.present());
  EXPECT_TRUE(olmo.layers[0].mlp.post_norm.present());
  EXPECT_EQ(olmo.layers[0].attention.qk_norm, QkNorm::kWhole);
  EXPECT_EQ(olmo.layers[0].attention.k_norm.weight.cols, 32);
  const ModelSpec exaone = Spec("exaone4");
  EXPECT_THAT(Windows(exaone), ElementsAre(32, 32, 32, 0));
  EXPECT_THAT(RopeDims(exaone), ElementsAre(16, 16, 16, 0));
  EXPECT_FALSE(exaone.layers[0].mlp.norm.present());
  const ModelSpec all = SpecAfter("exaone4", [](json::object& c) {
    c["sliding_window"] = nullptr;
    for (json::value& type : c["layer_types"].as_array()) type = "full_attention";
  });
  EXPECT_THAT(RopeDims(all), ElementsAre(16, 16, 16, 16));
  const ModelSpec glm = Spec("glm4");
  EXPECT_THAT(RopeDims(glm), ElementsAre(8, 8, 8));
  EXPECT_TRUE(glm.layers[0].attention.rope.interleaved);
  EXPECT_EQ(glm.layers[0].mlp.norm.weight.name, "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(glm.layers[0].attention.post_norm.weight.name,
            "model.layers.0.post_self_attn_layernorm.weight");
}

TEST_F(Recipes, Scales) {
  const ModelSpec granite = Spec("granite");
  EXPECT_EQ(granite.embedding_scale, 4.0f);
  EXPECT_EQ(granite.residual_scale, 0.5f);
  EXPECT_EQ(granite.final_norm.weight.scale, 0.5f);
  EXPECT_EQ(granite.layers[0].attention.scale, 0.25f);
  const ModelSpec cohere = Spec("cohere2");
  EXPECT_EQ(cohere.final_norm.weight.scale, 0.0625f);
  EXPECT_TRUE(cohere.layers[0].parallel);
  EXPECT_EQ(cohere.layers[0].attention.norm.kind, kernels::NormKind::kLayer);
  EXPECT_THAT(RopeDims(cohere), ElementsAre(16, 16, 16, 0));
  EXPECT_THAT(Windows(cohere), ElementsAre(32, 32, 32, 0));
}

TEST_F(Recipes, SmolLm3AndStarcoder2) {
  EXPECT_THAT(RopeDims(Spec("smollm3")), ElementsAre(16, 16, 16, 0));
  const ModelSpec star = Spec("starcoder2");
  EXPECT_TRUE(star.final_norm.bias.present());
  EXPECT_FALSE(star.layers[0].mlp.dense.gate.present());
  EXPECT_EQ(star.layers[0].mlp.dense.down.bias.cols, 64);
  EXPECT_EQ(star.layers[0].mlp.activation, kernels::Activation::kGeluTanh);
}

// Llama's small model with what StableLM has besides, the biases of its norms.
class StableLm : public Recipes {
 protected:
  json::object Config(const char* spelling = "config.json") {
    json::object c = model::Config("llama", spelling);
    c["architectures"] = {"StableLmForCausalLM"};
    c["layer_norm_eps"] = c["rms_norm_eps"];
    c["use_qkv_bias"] = false;
    c.erase("rope_scaling");
    c.erase("rope_parameters");
    return c;
  }
  Result<ModelFile> Open(const json::object& config, bool ffn_norm = true) {
    auto folder = formats::HfFolder::Open((kTiny / "llama").string());
    formats::SafetensorsWriter writer;
    for (const auto& tensor : folder->shards()[0].tensors()) {
      std::string name(tensor.name);
      if (!ffn_norm && name.ends_with("post_attention_layernorm.weight")) continue;
      const std::vector<std::byte> data(tensor.data.begin(), tensor.data.end());
      writer.tensors.push_back({name, std::string(tensor.type->name), tensor.shape, data});
      if (!name.ends_with("norm.weight")) continue;
      name.replace(name.rfind('.'), std::string::npos, ".bias");
      writer.tensors.push_back({name, std::string(tensor.type->name), tensor.shape, data});
    }
    const Copy copy("llama", config);
    fs::remove(copy.path() / "model.safetensors");
    EXPECT_TRUE(writer.WriteFile((copy.path() / "model.safetensors").string()));
    return copy.Open();
  }
};

TEST_F(StableLm, RotatesAQuarterOfAHead) {
  const auto model = Open(Config());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(RopeDims(model->spec()), ElementsAre(4, 4, 4));
  EXPECT_EQ(model->spec().final_norm.kind, kernels::NormKind::kLayer);
  EXPECT_TRUE(model->spec().layers[2].mlp.norm.bias.present());
  EXPECT_FALSE(model->spec().layers[2].parallel);
  json::object half = Config();
  half["rope_parameters"] = {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}};
  EXPECT_THAT(RopeDims(Open(half)->spec()), ElementsAre(8, 8, 8));
  json::object old = Config("config.v4.json");
  old["partial_rotary_factor"] = 0.5;
  EXPECT_THAT(RopeDims(Open(old)->spec()), ElementsAre(8, 8, 8));
}

TEST_F(StableLm, MayBeParallel) {
  json::object config = Config();
  EXPECT_EQ(Open(config, /*ffn_norm=*/false).error().reason, "missing_tensor");
  config["use_parallel_residual"] = true;
  EXPECT_EQ(Open(config).error().reason, "unexpected_tensor");
  const auto model = Open(config, /*ffn_norm=*/false);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE(model->spec().layers[0].parallel);
  config["qk_layernorm"] = true;
  EXPECT_EQ(Open(config, /*ffn_norm=*/false).error().field, "qk_layernorm");
}

// Flags of recurrent layers, and what they must have beside them.
std::vector<bool> RecurrentLayers(const ModelSpec& spec) {
  std::vector<bool> flags;
  for (const LayerSpec& layer : spec.layers) {
    flags.push_back(layer.recurrent.has_value());
    EXPECT_EQ(layer.attention.heads == 0, layer.recurrent.has_value());
    EXPECT_TRUE(layer.attention.norm.present());
  }
  return flags;
}

TEST_F(Recipes, Lfm2) {
  const ModelSpec spec = Spec("lfm2");
  EXPECT_THAT(RecurrentLayers(spec), ElementsAre(true, true, false, true));
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.final_norm.weight.name, "model.embedding_norm.weight");
  const RecurrentSpec& conv = *spec.layers[3].recurrent;
  EXPECT_EQ(conv.geometry.kind, kernels::RecurrentKind::kShortConv);
  EXPECT_EQ(conv.geometry.inner(), 64);
  EXPECT_EQ(conv.geometry.conv_width, 3);
  EXPECT_EQ(conv.input.at(0).weight.rows, 192);
  EXPECT_EQ(conv.conv_weight.rows, 3);
  EXPECT_EQ(conv.conv_weight.cols, 64);
  EXPECT_FALSE(conv.conv_bias.present());
  EXPECT_EQ(conv.o.weight.name, "model.layers.3.conv.out_proj.weight");
  EXPECT_EQ(spec.first_attention().k_norm.weight.name,
            "model.layers.2.self_attn.k_layernorm.weight");
  // As the first released folders spell it.
  const ModelSpec early = SpecAfter("lfm2", [](json::object& c) {
    c.erase("layer_types");
    c.erase("intermediate_size");
    c["full_attn_idxs"] = {2};
    c["block_ff_dim"] = 150;
    c["block_auto_adjust_ff_dim"] = true;
    c["block_ffn_dim_multiplier"] = 1.5;
    c["block_multiple_of"] = 16;
  });
  EXPECT_THAT(RecurrentLayers(early), ElementsAre(true, true, false, true));
  EXPECT_EQ(early.layers[0].mlp.dense.ffn, 160) << "two thirds, half as much again, rounded up";
  EXPECT_EQ(FaultAfter("lfm2", [](json::object& c) { c["layer_types"].at(2) = "conv"; }),
            "missing_tensor model.layers.2.conv.in_proj.weight");
  EXPECT_EQ(FaultAfter("lfm2", [](json::object& c) { c["layer_types"].at(0) = "rwkv"; }),
            "unsupported layer_types");
  for (const int64_t width : {int64_t{1}, int64_t{kernels::RecurrentGeometry::kMaxConvWidth} + 1}) {
    EXPECT_EQ(FaultAfter("lfm2", [&](json::object& c) { c["conv_L_cache"] = width; }),
              "hparam_range conv_L_cache");
  }
  EXPECT_EQ(FaultAfter("lfm2",
                       [](json::object& c) {
                         c["block_auto_adjust_ff_dim"] = true;
                         c["block_multiple_of"] = 1 << 22;
                         c["block_ffn_dim_multiplier"] = 1000;
                         c["intermediate_size"] = 1 << 22;
                       }),
            "hparam_range intermediate_size");
}

TEST_F(Recipes, Qwen3Next) {
  const ModelSpec spec = Spec("qwen3_next");
  EXPECT_THAT(RecurrentLayers(spec), ElementsAre(true, true, true, false));
  const RecurrentSpec& delta = *spec.layers[0].recurrent;
  EXPECT_EQ(delta.geometry.kind, kernels::RecurrentKind::kGatedDelta);
  EXPECT_EQ(delta.geometry.inner(), 64);
  EXPECT_EQ(delta.geometry.key_heads, 2);
  EXPECT_EQ(delta.geometry.heads, 4);
  EXPECT_EQ(delta.geometry.conv_channels(), 128);
  ASSERT_EQ(delta.input.size(), 2u);
  EXPECT_EQ(delta.input[0].weight.rows, 192);
  EXPECT_TRUE(delta.input[1].weight.full);
  EXPECT_EQ(delta.z.first, 64);
  EXPECT_EQ(delta.z.stride, 96);
  EXPECT_EQ(delta.a.first, 194);
  EXPECT_TRUE(delta.decay.neg_exp);
  EXPECT_EQ(delta.out_norm.weight.offset, 0.0f);
  EXPECT_EQ(spec.layers[0].attention.norm.weight.offset, 1.0f);
  EXPECT_EQ(spec.layers[0].mlp.moe->shared.ffn, 48);
  // Query and gate of each head in turn.
  const AttentionSpec& a = spec.layers[3].attention;
  EXPECT_EQ(a.q.weight.name, a.gate.weight.name);
  EXPECT_EQ(a.gate.weight.first_row, 32);
  EXPECT_EQ(a.gate.weight.row_block, 32);
  EXPECT_EQ(a.gate.weight.row_stride, 64);
  EXPECT_EQ(a.rope.dims, 8);
  auto model = Copy("qwen3_next", Config("qwen3_next")).Open();
  ASSERT_TRUE(model);
  std::vector<float> whole(256 * 64), gate(128 * 64), log(4), decay(4);
  WeightSpec both = a.q.weight;
  both.rows = 256;
  both.row_stride = both.row_block = 1;
  ASSERT_TRUE(model->ReadVector(both, whole.data()) &&
              model->ReadVector(a.gate.weight, gate.data()));
  for (size_t i = 0; i < gate.size(); ++i) {
    const size_t row = i / 64, at = row / 32 * 64 + 32 + row % 32;
    ASSERT_EQ(gate[i], whole[at * 64 + i % 64]) << i;
  }
  WeightSpec stored = delta.decay;
  stored.neg_exp = false;
  ASSERT_TRUE(model->ReadVector(stored, log.data()) &&
              model->ReadVector(delta.decay, decay.data()));
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(decay[i], -std::exp(log[i]));
  // Without a list every fourth layer attends, or as the file says.
  const auto without_list = [](json::object& c) { c.erase("layer_types"); };
  EXPECT_THAT(RecurrentLayers(SpecAfter("qwen3_next", without_list)),
              ElementsAre(true, true, true, false));
  EXPECT_EQ(FaultAfter("qwen3_next",
                       [&](json::object& c) {
                         without_list(c);
                         c["full_attention_interval"] = 2;
                       }),
            "missing_tensor model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(FaultAfter("qwen3_next", [](json::object& c) { c["linear_num_key_heads"] = 3; }),
            "hparam_range linear_num_value_heads");
  EXPECT_EQ(FaultAfter("qwen3_next",
                       [](json::object& c) {
                         c["linear_key_head_dim"] = kernels::RecurrentGeometry::kMaxKeyDim + 1;
                       }),
            "hparam_range linear_key_head_dim");
  EXPECT_EQ(FaultAfter("qwen3_next",
                       [](json::object& c) {
                         c["linear_num_value_heads"] = limits::kMaxRecurrentHeads + 1;
                       }),
            "hparam_range linear_num_value_heads");
}

// Heads that guess further tokens are no part of the model.
TEST_F(Recipes, Qwen3NextWithExtraHeads) {
  auto folder = formats::HfFolder::Open((kTiny / "qwen3_next").string());
  ASSERT_TRUE(folder);
  formats::SafetensorsWriter writer;
  for (const auto& tensor : folder->shards()[0].tensors()) {
    writer.tensors.push_back({tensor.name,
                              std::string(tensor.type->name),
                              tensor.shape,
                              {tensor.data.begin(), tensor.data.end()}});
  }
  writer.tensors.push_back({"mtp.fc.weight", "BF16", {2, 2}, std::vector<std::byte>(8)});
  const Copy copy("qwen3_next", Config("qwen3_next"));
  fs::remove(copy.path() / "model.safetensors");
  ASSERT_TRUE(writer.WriteFile((copy.path() / "model.safetensors").string()));
  const auto model = copy.Open();
  EXPECT_TRUE(model) << model.error().message;
}

TEST_F(Recipes, GraniteHybrid) {
  const ModelSpec spec = Spec("granitemoehybrid");
  EXPECT_THAT(RecurrentLayers(spec), ElementsAre(true, false, true, false));
  EXPECT_EQ(spec.embedding_scale, 2.0f);
  EXPECT_EQ(spec.residual_scale, 0.5f);
  EXPECT_EQ(spec.final_norm.weight.scale, 0.5f);
  EXPECT_EQ(spec.first_attention().scale, 0.25f);
  EXPECT_THAT(RopeDims(spec), ElementsAre(0, 16, 0, 16));
  const RecurrentSpec& mamba = *spec.layers[2].recurrent;
  EXPECT_EQ(mamba.geometry.kind, kernels::RecurrentKind::kMamba2);
  EXPECT_EQ(mamba.geometry.inner(), 128);
  EXPECT_EQ(mamba.geometry.heads, 8);
  EXPECT_EQ(mamba.geometry.value_dim, 16);
  EXPECT_EQ(mamba.input.at(0).weight.rows, 296);
  EXPECT_EQ(mamba.k.first, 256);
  EXPECT_EQ(mamba.q.first, 272);
  EXPECT_EQ(mamba.a.first, 288);
  EXPECT_EQ(mamba.conv_bias.cols, 160);
  EXPECT_EQ(mamba.skip.name, "model.layers.2.mamba.D");
  EXPECT_EQ(mamba.min_dt, 0.0f);
  EXPECT_TRUE(std::isinf(mamba.max_dt));
  const MoeSpec& moe = *spec.layers[0].mlp.moe;
  EXPECT_EQ(moe.router.score, kernels::RouterScore::kSoftmaxOfChosen);
  EXPECT_EQ(moe.experts[3].up.weight.first_row, 160);
  EXPECT_EQ(moe.shared.ffn, 64);
  EXPECT_EQ(moe.shared.up.weight.first_row, 64);
  EXPECT_FALSE(moe.shared_gate.present());
  const ModelSpec nope =
      SpecAfter("granitemoehybrid", [](json::object& c) { c["position_embedding_type"] = "nope"; });
  EXPECT_THAT(RopeDims(nope), ElementsAre(0, 0, 0, 0));
  const ModelSpec bounded = SpecAfter("granitemoehybrid", [](json::object& c) {
    c["time_step_limit"] = {0.001, 0.1};
  });
  EXPECT_EQ(bounded.layers[0].recurrent->max_dt, 0.1f);
  EXPECT_EQ(FaultAfter("granitemoehybrid",
                       [](json::object& c) {
                         c["time_step_limit"] = {1, 0};
                       }),
            "hparam_range time_step_limit");
  EXPECT_EQ(FaultAfter("granitemoehybrid", [](json::object& c) { c["mamba_n_heads"] = 7; }),
            "hparam_range mamba_n_heads");
  // Without experts the shared one is the MLP; here the experts' weights are then left over.
  EXPECT_EQ(FaultAfter("granitemoehybrid", [](json::object& c) { c["num_local_experts"] = 0; }),
            "unexpected_tensor model.layers.0.block_sparse_moe.input_linear.weight");
}

TEST_F(Recipes, OtherRecurrentLayersAreRefusedByName) {
  for (const char* name : {"MambaForCausalLM", "FalconH1ForCausalLM", "Lfm2MoeForCausalLM"}) {
    json::object config = Config("llama");
    config["architectures"] = {name};
    const auto model = Copy("llama", config).Open();
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().reason, "unsupported_architecture");
    EXPECT_THAT(model.error().message, HasSubstr(name));
    EXPECT_THAT(model.error().message, HasSubstr("recurrent layers"));
  }
}

TEST_F(Recipes, RefuseWhatContradictsTheWeights) {
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c["hidden_size"] = 128; }),
            "shape_mismatch model.embed_tokens.weight");
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c["num_hidden_layers"] = 4; }),
            "missing_tensor model.layers.3.input_layernorm.weight");
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c["num_hidden_layers"] = 2; }),
            "unexpected_tensor model.layers.2.input_layernorm.weight");
  EXPECT_EQ(FaultAfter("qwen2", [](json::object& c) { c["tie_word_embeddings"] = false; }),
            "missing_tensor lm_head.weight");
  EXPECT_EQ(FaultAfter("glm4", [](json::object& c) { c["attention_bias"] = false; }),
            "unexpected_tensor model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c.erase("hidden_size"); }),
            "missing_key hidden_size");
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c["hidden_size"] = "64"; }),
            "wrong_type hidden_size");
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c["hidden_act"] = "tanh"; }),
            "unsupported hidden_act");
  EXPECT_EQ(FaultAfter("llama", [](json::object& c) { c["architectures"] = {"NoSuch"}; }),
            "unknown_architecture architectures");
  for (const char* method : {"awq", "gptq", "fp8", "compressed-tensors", "bitsandbytes"}) {
    EXPECT_EQ(FaultAfter("llama",
                         [&](json::object& c) {
                           c["quantization_config"] = {{"quant_method", method}};
                         }),
              "unsupported_quantization quantization_config.quant_method");
  }
}

}  // namespace
}  // namespace vivace::model
