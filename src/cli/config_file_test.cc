#include "cli/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/limits.h"
#include "cli/flags.h"
#include "cli/serve_options.h"

namespace vivace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigFlags : public ::testing::Test {
 protected:
  ~ConfigFlags() override { std::filesystem::remove(path_); }

  Result<Parsed> Parse(const std::string& text, std::vector<std::string> args = {}) {
    std::ofstream(path_) << text;
    args.insert(args.end(), {"--config", path_});
    return ParseFlags(ServeCommand(&options_), args);
  }
  std::string Message(const std::string& text) {
    const auto parsed = Parse(text);
    return parsed ? "accepted" : parsed.error().message;
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("vivace_config_" + std::to_string(getpid())))
          .string();
  ServeOptions options_;
};

TEST_F(ConfigFlags, GivesFlagsAndTheModel) {
  const auto parsed = Parse(R"({"model": "m.gguf", "max-num-seqs": 32, "max_itl": 12.5,
      "enable_prefix_caching": false, "served-model-name": ["a", "b"], "kv-cache-dtype": "int8",
      "max-model-len": "4k", "provenance": {"written_by": ["anything"]}})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->positionals, ElementsAre("m.gguf"));
  EXPECT_EQ(options_.engine.max_num_seqs, 32);
  EXPECT_EQ(options_.engine.max_itl_ms, 12.5);
  EXPECT_FALSE(options_.engine.enable_prefix_caching);
  EXPECT_EQ(options_.engine.max_model_len, 4000);
  EXPECT_EQ(options_.engine.kv_cache_dtype, kernels::KvDType::kI8);
  EXPECT_THAT(options_.server.served_model_names, ElementsAre("a", "b"));
}

TEST_F(ConfigFlags, TheCommandLineWins) {
  const auto parsed = Parse(
      R"({"model": "m.gguf", "max-num-seqs": 32, "served-model-name": "a",
          "enable-prefix-caching": false, "max-queued-requests": 7})",
      {"other.gguf", "--max_num_seqs", "8", "--served-model-name=b", "--enable-prefix-caching"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->positionals, ElementsAre("other.gguf"));
  EXPECT_EQ(options_.engine.max_num_seqs, 8);
  EXPECT_TRUE(options_.engine.enable_prefix_caching);
  EXPECT_EQ(options_.engine.max_queued_requests, 7);
  EXPECT_THAT(options_.server.served_model_names, ElementsAre("b"));
}

TEST_F(ConfigFlags, AnAliasIsTheSameFlag) {
  ASSERT_TRUE(Parse(R"({"max_num_queued_reqs": 5})"));
  EXPECT_EQ(options_.engine.max_queued_requests, 5);
}

TEST_F(ConfigFlags, AnUnknownKeyNamesTheNearest) {
  EXPECT_THAT(Message(R"({"max-num-seq": 3})"),
              HasSubstr("\"max-num-seq\" is no flag of `vivace serve`; did you mean "
                        "\"max-num-seqs\"?"));
  EXPECT_THAT(Message(R"({"modle": "m"})"), HasSubstr("did you mean \"model\"?"));
}

TEST_F(ConfigFlags, WrongValuesAreRefusedByTheirKey) {
  EXPECT_THAT(Message(R"({"max-num-seqs": true})"),
              HasSubstr("\"max-num-seqs\" is true; give a number or a string"));
  EXPECT_THAT(Message(R"({"enable-prefix-caching": "yes"})"),
              HasSubstr("is \"yes\"; give true or false"));
  EXPECT_THAT(Message(R"({"max-num-seqs": null})"), HasSubstr("\"max-num-seqs\" is null; give"));
  EXPECT_THAT(Message(R"({"max-num-seqs": {"a": 1}})"), HasSubstr("give a string, a number"));
  EXPECT_THAT(Message(R"({"served-model-name": [["a"]]})"), HasSubstr("\"served-model-name\""));
  EXPECT_THAT(Message(R"({"max-num-seqs": "many"})"), HasSubstr(path_ + ": --max-num-seqs"));
  EXPECT_THAT(Message(R"({"max-num-seqs": -1})"), HasSubstr("--max-num-seqs"));
  EXPECT_THAT(Message(R"({"max-num-seqs": 1, "max_num_seqs": 2})"), HasSubstr("the same flag"));
  EXPECT_THAT(Message(R"({"model": 3})"), HasSubstr("\"model\" is 3"));
}

TEST_F(ConfigFlags, WhatIsNoConfigurationIsRefused) {
  EXPECT_THAT(Message("max-num-seqs: 3"), HasSubstr("is no JSON"));
  EXPECT_THAT(Message("[1]"), HasSubstr("is no JSON object"));
  EXPECT_THAT(Message(""), HasSubstr("is no JSON"));
  EXPECT_THAT(Message(std::string(limits::kMaxConfigBytes + 1, ' ')), HasSubstr("larger than"));
  EXPECT_THAT(Message(R"({"a": )" + std::string(100, '[') + std::string(100, ']') + "}"),
              HasSubstr("is no JSON"));
  const auto missing =
      ParseFlags(ServeCommand(&options_), std::vector<std::string>{"--config", path_ + ".none"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("which is no file"));
}

TEST_F(ConfigFlags, TwoFilesAreOneTooMany) {
  const auto parsed = Parse("{}", {"--config", "a.json"});
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("--config is given more than once"));
}

}  // namespace
}  // namespace vivace::cli
