// Configurations that contradict themselves, and what transformers' classes take for a key that is
// not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/hf_folder.h"
#include "formats/safetensors_writer.h"
#include "model/testing/tiny_folders.h"

namespace vivace::model {
namespace {

using ::testing::HasSubstr;

class ConfigFaults : public TinyFolders {};

TEST_F(ConfigFaults, WhatMustBeAnObject) {
  for (const char* text : {R"("x")", "5", "[1]", "true"}) {
    SCOPED_TRACE(text);
    for (const char* key : {"rope_parameters", "rope_scaling", "quantization_config"}) {
      EXPECT_EQ(FaultAfter("llama", [&](json::object& c) { c[key] = json::parse(text); }),
                std::string("wrong_type ") + key);
    }
    for (const char* key : {"full_attention", "sliding_attention"}) {
      EXPECT_EQ(FaultAfter("gemma3_text",
                           [&](json::object& c) {
                             c["rope_parameters"].as_object()[key] = json::parse(text);
                           }),
                std::string("wrong_type rope_parameters.") + key);
    }
  }
  EXPECT_EQ(FaultAfter("llama",
                       [](json::object& c) {
                         c["rope_scaling"] = nullptr;
                         c["quantization_config"] = nullptr;
                       }),
            "");
}

TEST_F(ConfigFaults, RopeKindsLackTheirNumbers) {
  const auto rope = [](const char* spelling, json::object value) {
    return FaultAfter("llama", [&](json::object& c) {
      c.erase("rope_parameters");
      c[spelling] = std::move(value);
    });
  };
  for (const char* spelling : {"rope_parameters", "rope_scaling"}) {
    const std::string missing = std::string("missing_key ") + spelling;
    for (const char* kind : {"linear", "dynamic", "yarn", "llama3"}) {
      EXPECT_EQ(rope(spelling, {{"rope_type", kind}}), missing + ".factor");
      EXPECT_EQ(rope(spelling, {{"rope_type", kind}, {"factor", nullptr}}), missing + ".factor");
    }
    const json::object whole = {{"rope_type", "llama3"},
                                {"factor", 8.0},
                                {"low_freq_factor", 1.0},
                                {"high_freq_factor", 4.0},
                                {"original_max_position_embeddings", 64}};
    EXPECT_EQ(rope(spelling, whole), "");
    for (const auto& [key, ignored] : whole) {
      if (key == "rope_type") continue;
      json::object part = whole;
      part.erase(key);
      // The original context may stand beside the object.
      const bool top = key.starts_with("original");
      EXPECT_EQ(rope(spelling, part), (top ? "missing_key " : missing + ".") + std::string(key));
    }
    EXPECT_EQ(rope(spelling, {{"factor", 2.0}}), missing + ".rope_type");
  }
  // Longer contexts than the original one give yarn its factor.
  const ModelSpec yarn = SpecAfter("llama", [](json::object& c) {
    c["rope_parameters"] = {{"rope_type", "yarn"}, {"original_max_position_embeddings", 128}};
  });
  EXPECT_EQ(yarn.layers[0].attention.rope.factor, 4.0f);
}

TEST_F(ConfigFaults, WindowedLayersWithoutAWindow) {
  for (const char* name : {"gemma2", "gemma3_text", "cohere2", "exaone4", "gpt_oss"}) {
    SCOPED_TRACE(name);
    for (const char* none : {"null", "0"}) {
      const auto without = [&](json::object& c) { c["sliding_window"] = json::parse(none); };
      EXPECT_EQ(FaultAfter(name, without), "hparam_range layer_types");
      EXPECT_EQ(FaultAfter(name,
                           [&](json::object& c) {
                             without(c);
                             for (json::value& type : c["layer_types"].as_array()) {
                               type = "full_attention";
                             }
                           }),
                "");
    }
  }
  EXPECT_EQ(FaultAfter("qwen2",
                       [](json::object& c) {
                         c["layer_types"].as_array()[1] = "sliding_attention";
                         c["sliding_window"] = 16;
                       }),
            "hparam_range layer_types")
      << "use_sliding_window is false";
}

TEST_F(ConfigFaults, ListsOfLayers) {
  const auto types = [](const char* name, json::value item) {
    return FaultAfter(name, [&](json::object& c) { c["layer_types"].as_array()[0] = item; });
  };
  EXPECT_EQ(types("gemma2", true), "wrong_type layer_types");
  EXPECT_EQ(types("gemma2", 1), "wrong_type layer_types");
  EXPECT_EQ(types("gemma2", nullptr), "wrong_type layer_types");
  EXPECT_EQ(types("gemma2", "chunked_attention"), "unsupported layer_types");
  const auto rotated = [](json::value item) {
    return FaultAfter("smollm3",
                      [&](json::object& c) { c["no_rope_layers"].as_array()[0] = item; });
  };
  EXPECT_EQ(rotated(true), "");
  EXPECT_EQ(rotated(0), "");
  EXPECT_EQ(rotated(2), "wrong_type no_rope_layers");
  EXPECT_EQ(rotated("full_attention"), "wrong_type no_rope_layers");
}

TEST_F(ConfigFaults, WhatWeDoNotCompute) {
  const auto method = [](const char* name, json::value value) {
    return FaultAfter(name, [&](json::object& c) { c["topk_method"] = std::move(value); });
  };
  EXPECT_EQ(method("deepseek_v2", "best_of_three"), "unsupported topk_method");
  EXPECT_EQ(method("deepseek_v2", "noaux_tc"), "unsupported topk_method");
  EXPECT_EQ(method("deepseek_v2", 3), "wrong_type topk_method");
  EXPECT_EQ(method("deepseek_v2", nullptr), "");
  EXPECT_EQ(method("deepseek_v3", "noaux_tc"), "");
  EXPECT_EQ(method("deepseek_v3", nullptr), "");
  EXPECT_EQ(method("deepseek_v3", "greedy"), "unsupported topk_method");
  for (const char* name : {"gemma2", "gemma3_text", "llama"}) {
    EXPECT_EQ(FaultAfter(name, [](json::object& c) { c["use_bidirectional_attention"] = true; }),
              "unsupported use_bidirectional_attention");
  }
}

TEST_F(ConfigFaults, DeepseekV2IsGreedyUnlessItSays) {
  const auto groups = [](json::value method) {
    const ModelSpec spec = SpecAfter("deepseek_v2", [&](json::object& c) {
      c["n_group"] = 2;
      c["topk_group"] = 1;
      c["topk_method"] = std::move(method);
    });
    return spec.layers[1].mlp.moe->router.groups;
  };
  EXPECT_EQ(groups("group_limited_greedy"), 2);
  EXPECT_EQ(groups("greedy"), 1);
  EXPECT_EQ(groups(nullptr), 1);
}

// Of a folder whose configuration lacks a key; null says that there is none of it.
TEST_F(ConfigFaults, ClassDefaults) {
  const auto without = [](const char* name, const char* key) {
    return SpecAfter(name, [&](json::object& c) { c.erase(key); });
  };
  const auto null = [](const char* name, const char* key) {
    return SpecAfter(name, [&](json::object& c) { c[key] = nullptr; });
  };
  EXPECT_EQ(without("gemma2", "attn_logit_softcapping").layers[0].attention.softcap, 50.0f);
  EXPECT_EQ(null("gemma2", "attn_logit_softcapping").layers[0].attention.softcap, 0.0f);
  EXPECT_EQ(without("gemma2", "final_logit_softcapping").logit_softcap, 30.0f);
  EXPECT_EQ(null("gemma2", "final_logit_softcapping").logit_softcap, 0.0f);
  EXPECT_EQ(without("gemma3_text", "final_logit_softcapping").logit_softcap, 0.0f);
  for (const char* name : {"gemma2", "gemma3_text"}) {
    EXPECT_EQ(without(name, "query_pre_attn_scalar").layers[0].attention.scale, 1.0f / 16.0f);
    EXPECT_EQ(null(name, "query_pre_attn_scalar").layers[0].attention.scale, 1.0f / 16.0f);
  }
  EXPECT_EQ(without("granite", "attention_multiplier").layers[0].attention.scale, 1.0f);
  EXPECT_EQ(without("deepseek_v3", "routed_scaling_factor").layers[1].mlp.moe->router.scale, 2.5f);
  EXPECT_EQ(without("deepseek_v2", "routed_scaling_factor").layers[1].mlp.moe->router.scale, 1.0f);
  for (const char* name : {"gemma2", "gemma3_text", "cohere2", "exaone4", "mistral"}) {
    EXPECT_EQ(without(name, "sliding_window").layers[0].attention.window, 4096) << name;
  }
  EXPECT_EQ(without("gpt_oss", "sliding_window").layers[0].attention.window, 128);
  const ModelSpec qwen = SpecAfter("qwen3", [](json::object& c) {
    c.erase("sliding_window");
    c["use_sliding_window"] = true;
    c["layer_types"].as_array()[0] = "sliding_attention";
  });
  EXPECT_EQ(qwen.layers[0].attention.window, 4096);
}

// The model with one more tensor.
std::string FaultWith(const std::string& name, const std::string& tensor, uint64_t length) {
  const auto folder = formats::HfFolder::Open((kTiny / name).string());
  formats::SafetensorsWriter writer;
  for (const auto& each : folder->shards()[0].tensors()) {
    writer.tensors.push_back({each.name,
                              std::string(each.type->name),
                              each.shape,
                              {each.data.begin(), each.data.end()}});
  }
  writer.tensors.push_back({tensor, "F32", {length}, std::vector<std::byte>(length * 4)});
  const Copy copy(name, Config(name));
  fs::remove(copy.path() / "model.safetensors");
  EXPECT_TRUE(writer.WriteFile((copy.path() / "model.safetensors").string()));
  const auto model = copy.Open();
  return model ? "" : model.error().reason + " " + model.error().field;
}

TEST_F(ConfigFaults, BiasesTheConfigurationDenies) {
  for (const auto& [part, length] : {std::pair("self_attn.q_proj", 64u),
                                     {"self_attn.o_proj", 64u},
                                     {"mlp.gate_proj", 160u},
                                     {"mlp.up_proj", 160u},
                                     {"mlp.down_proj", 64u}}) {
    const std::string tensor = std::string("model.layers.0.") + part + ".bias";
    EXPECT_EQ(FaultWith("llama", tensor, length), "unexpected_tensor " + tensor);
  }
}

TEST_F(ConfigFaults, AreOneLineThatNamesTheFile) {
  json::object config = Config("llama");
  config["rope_scaling"] = "x\n";
  const auto model = Copy("llama", config).Open();
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("config.json: rope_scaling: is not an object"));
}

}  // namespace
}  // namespace vivace::model
