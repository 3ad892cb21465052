// A Hugging Face folder made here: the same model as a GGUF file must be the same weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "formats/safetensors_writer.h"
#include "formats/tiny_llama.h"
#include "model/loaded_model.h"
#include "model/testing/any_type.h"
#include "quant/dequantize.h"

namespace vivace::model {
namespace {

namespace fs = std::filesystem;
using formats::SafetensorsWriter;
using ::testing::HasSubstr;

const std::map<std::string, std::string> kParts = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"}};

std::string HfName(const std::string& name) {
  if (name == "token_embd.weight") return "model.embed_tokens.weight";
  if (name == "output_norm.weight") return "model.norm.weight";
  const size_t dot = name.find('.', 4);  // after "blk.N"
  const std::string stem = name.substr(dot + 1, name.rfind('.') - dot - 1);
  return "model.layers." + name.substr(4, dot - 4) + "." + kParts.at(stem) + ".weight";
}

constexpr const char* kConfig = R"({
  "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
  "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "vocab_size": 264, "hidden_act": "silu", "tie_word_embeddings": true, "eos_token_id": [2, 0]})";

class HfModel : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (auto& tensor : formats::MakeTinyLlama().tensors) {
      SafetensorsWriter::Tensor copy{
          HfName(tensor.name), "F32", {tensor.dims.rbegin(), tensor.dims.rend()}, tensor.data};
      writer_.tensors.push_back(std::move(copy));
    }
    std::ofstream(folder_ / "config.json") << kConfig;
    ASSERT_TRUE(writer_.WriteFile(folder_ / "model.safetensors"));
  }
  void TearDown() override { fs::remove_all(folder_); }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "vivace_hf_model_test";
  SafetensorsWriter writer_;
};

TEST_F(HfModel, Opens) {
  auto model = OpenModel(folder_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->gguf(), nullptr);
  EXPECT_EQ(model->spec().vocab, 264);
  EXPECT_FALSE(model->spec().layers[0].attention.rope.interleaved);
  EXPECT_THAT(model->eos_ids(), ::testing::ElementsAre(2, 0));
  EXPECT_EQ(model->parts().size(), 1u);
  const auto view = model->Weight(model->spec().layers[1].mlp.dense.down.weight);
  ASSERT_TRUE(view);
  formats::GgufWriter gguf = formats::MakeTinyLlama();
  const auto& source = gguf.FindTensor("blk.1.ffn_down.weight")->data;
  EXPECT_EQ(std::memcmp(view->data, source.data(), source.size()), 0);
}

TEST_F(HfModel, ComesInShards) {
  SafetensorsWriter first, second;
  std::string map;
  for (size_t i = 0; i < writer_.tensors.size(); ++i) {
    (i % 2 == 0 ? first : second).tensors.push_back(writer_.tensors[i]);
    map += fmt::format("{}\"{}\": \"{}.st\"", i == 0 ? "" : ",", writer_.tensors[i].name, i % 2);
  }
  fs::remove(folder_ / "model.safetensors");
  ASSERT_TRUE(first.WriteFile(folder_ / "0.st"));
  ASSERT_TRUE(second.WriteFile(folder_ / "1.st"));
  std::ofstream(folder_ / "model.safetensors.index.json") << "{\"weight_map\": {" << map << "}}";
  auto model = OpenModel(folder_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->parts().size(), 2u);
  EXPECT_TRUE(model->CheckUnchanged());
  std::ofstream(folder_ / "1.st", std::ios::binary | std::ios::app) << "x";
  EXPECT_EQ(model->CheckUnchanged().error().reason, "file_changed");
}

TEST_F(HfModel, RefusesTokensOutsideTheVocabulary) {
  std::ofstream(folder_ / "generation_config.json") << R"({"eos_token_id": 264})";
  const auto model = OpenModel(folder_);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().reason, "token_id_range");
  EXPECT_THAT(model.error().message, HasSubstr("generation_config.json"));
}

// A weight read back as floats, whatever it was made into.
std::vector<float> Rows(const ModelFile& model, const WeightSpec& weight) {
  std::vector<std::byte> scratch;
  const auto& ops = AnyType();
  const auto view = model.Weight(weight, ops, &scratch);
  EXPECT_TRUE(view) << view.error().message;
  std::vector<float> out(static_cast<size_t>(weight.rows) * static_cast<size_t>(weight.cols));
  for (int32_t i = 0; i < weight.rows; ++i) {
    quant::DequantizeRow(view->dtype, view->data + i * RowBytes(Info(view->dtype), weight.cols),
                         weight.cols, out.data() + int64_t{i} * weight.cols);
  }
  const auto shape = model.WeightShape(weight, ops);
  EXPECT_EQ(shape->dtype, view->dtype);
  return out;
}

TEST_F(HfModel, GathersRowsAndTurnsSlices) {
  auto model = OpenModel(folder_);
  ASSERT_TRUE(model) << model.error().message;
  formats::GgufWriter gguf = formats::MakeTinyLlama();
  const auto* up =
      reinterpret_cast<const float*>(gguf.FindTensor("blk.0.ffn_up.weight")->data.data());
  std::vector<float> values(up, up + 128 * 64);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  WeightSpec weight{.name = name};
  weight.rows = 5;
  weight.cols = 64;
  weight.first_row = 3;
  weight.row_stride = 2;
  const auto strided = Rows(*model, weight);
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 64; ++j) {
      ASSERT_EQ(strided[static_cast<size_t>(i * 64 + j)],
                values[static_cast<size_t>((3 + 2 * i) * 64 + j)]);
    }
  }
  // As four slices [32 inputs, 64 outputs].
  weight = WeightSpec{.name = name};
  weight.rows = 7;
  weight.cols = 32;
  weight.slice = 2;
  weight.slices = 4;
  weight.first_row = 1;
  weight.row_stride = 3;
  weight.transposed = true;
  const auto turned = Rows(*model, weight);
  for (int i = 0; i < 7; ++i) {
    for (int j = 0; j < 32; ++j) {
      ASSERT_EQ(turned[static_cast<size_t>(i * 32 + j)],
                values[static_cast<size_t>(2 * 32 * 64 + j * 64 + 1 + 3 * i)]);
    }
  }
  weight.first_row = 60;
  EXPECT_EQ(model->WeightShape(weight, AnyType()).error().reason, "shape_mismatch");
}

TEST_F(HfModel, ExpandsTypesNoKernelKnows) {
  auto writer = formats::MakeTinyLlama({.layers = 1, .hidden = 256, .ffn = 256});
  auto* tensor = writer.FindTensor("blk.0.ffn_up.weight");
  const auto as = [&](DType dtype) {
    tensor->type_id = formats::GgmlTypeId(dtype);
    tensor->data.assign(static_cast<size_t>(256 * RowBytes(Info(dtype), 256)), std::byte{0x41});
    const std::string path = folder_ / "t.gguf";
    EXPECT_TRUE(writer.WriteFile(path));
    return OpenModel(path);
  };
  kernels::BlockOps some = {};
  some.can_pack = [](DType dtype, int32_t, int32_t) {
    return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kQ8_0;
  };
  for (const auto& [stored, made] :
       {std::pair(DType::kIQ2_XS, DType::kF16), std::pair(DType::kTQ1_0, DType::kF16),
        std::pair(DType::kQ2_K, DType::kF16), std::pair(DType::kMXFP4, DType::kQ8_0),
        std::pair(DType::kIQ4_XS, DType::kQ8_0), std::pair(DType::kQ8_0, DType::kQ8_0)}) {
    SCOPED_TRACE(Info(stored).name);
    auto model = as(stored);
    ASSERT_TRUE(model) << model.error().message;
    const WeightSpec& weight = model->spec().layers[0].mlp.dense.up.weight;
    const auto exact = Rows(*model, weight);
    std::vector<std::byte> scratch;
    const auto view = model->Weight(weight, some, &scratch);
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ(view->dtype, made);
    std::vector<float> got(256);
    quant::DequantizeRow(view->dtype, view->data, 256, got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], exact[i], std::abs(exact[i]) * 0x1p-11f + 1e-7f) << i;
    }
    WeightSpec full = weight;
    full.full = true;
    EXPECT_EQ(model->WeightShape(full, some)->dtype, DType::kF32);
    EXPECT_EQ(Rows(*model, full), exact);
  }
}

TEST_F(HfModel, QuantizesMatricesButNotRouters) {
  auto model = OpenModel(folder_);
  ASSERT_TRUE(model);
  WeightSpec weight = model->spec().layers[0].mlp.dense.up.weight;
  const auto before = Rows(*model, weight);
  model->Quantize(DType::kQ8_0);
  const auto& ops = AnyType();
  EXPECT_EQ(model->WeightShape(weight, ops)->dtype, DType::kQ8_0);
  const auto after = Rows(*model, weight);
  for (size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(after[i], before[i], 0.1 / 127);
  weight.full = true;
  EXPECT_EQ(model->WeightShape(weight, ops)->dtype, DType::kF32);
  EXPECT_EQ(Rows(*model, weight), before);
}

}  // namespace
}  // namespace vivace::model
