#include "text/pretokenizer_names.h"

#include <gtest/gtest.h>

namespace vivace {
namespace {

std::optional<PretokenizerFamily> Find(std::string_view name) {
  auto family = PretokenizerFamilyByName(name);
  EXPECT_TRUE(family) << name << ": " << family.error().message;
  return family ? std::move(*family) : std::nullopt;
}

TEST(PretokenizerNames, EveryFamilyHasOne) {
  for (const char* name : {"gpt-2",        "phi-2",          "olmo",       "smollm",
                           "starcoder",    "refact",         "command-r",  "exaone",
                           "llama-bpe",    "falcon3",        "lfm2",       "glm4",
                           "chatglm-bpe",  "dbrx",           "qwen2",      "deepseek-r1-qwen",
                           "stablelm2",    "gpt-4o",         "llama4",     "tekken",
                           "exaone4",      "bailingmoe",     "seed-coder", "deepseek-v3",
                           "deepseek-llm", "deepseek-coder", "falcon",     "grok-2",
                           "hunyuan",      "pixtral"}) {
    const auto family = Find(name);
    ASSERT_TRUE(family) << name;
    EXPECT_TRUE(WordCutter(family->cutter).byte_level()) << name;
  }
  for (const char* name : {"", "default", "nonesuch"}) EXPECT_FALSE(Find(name)) << name;
}

TEST(PretokenizerNames, TheCommonOnesAreOneScanner) {
  const auto scanner = [](std::string_view name) {
    return WordCutter(Find(name)->cutter).scanner();
  };
  EXPECT_EQ(scanner("gpt-2"), Pretokenizer::kGpt2);
  EXPECT_EQ(scanner("smollm"), Pretokenizer::kSmolLm);
  EXPECT_EQ(scanner("command-r"), Pretokenizer::kSmolLm);
  EXPECT_EQ(scanner("llama-bpe"), Pretokenizer::kLlama3);
  EXPECT_EQ(scanner("qwen2"), Pretokenizer::kQwen2);
  EXPECT_EQ(scanner("gpt-4o"), Pretokenizer::kO200k);
  EXPECT_EQ(scanner("tekken"), Pretokenizer::kTekken);
  EXPECT_EQ(scanner("deepseek-v3"), std::nullopt);
  EXPECT_EQ(scanner("falcon"), std::nullopt);
}

}  // namespace
}  // namespace vivace
