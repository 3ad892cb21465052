#include "cli/flags.h"

#include <gtest/gtest.h>

namespace vivace::cli {
namespace {

struct Stored {
  std::string length, host;
  std::string caching;
};

Command MakeCommand(Stored* stored) {
  const auto into = [](std::string* to) {
    return [to](const std::string& value) -> Status {
      *to = value;
      return {};
    };
  };
  return {.name = "serve",
          .positional = "MODEL",
          .summary = "",
          .details = "",
          .flags = {{"max-model-len", "N", "", "", into(&stored->length)},
                    {"host", "ADDRESS", "", "", into(&stored->host)},
                    {"enable-prefix-caching", "", "on", "", into(&stored->caching)}}};
}

TEST(Flags, DashesUnderscoresAndEquals) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"m.gguf", "--max-model-len", "32k", "--host=a_b"},
                                             {"--max_model_len=32k", "--host", "a_b", "m.gguf"}}) {
    Stored stored;
    const auto parsed = ParseFlags(MakeCommand(&stored), args);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->positionals, std::vector<std::string>{"m.gguf"});
    EXPECT_EQ(stored.length, "32k");
    EXPECT_EQ(stored.host, "a_b");
  }
}

TEST(Flags, Switches) {
  Stored stored;
  ASSERT_TRUE(
      ParseFlags(MakeCommand(&stored), std::vector<std::string>{"--no-enable-prefix-caching"}));
  EXPECT_EQ(stored.caching, "false");
  ASSERT_TRUE(
      ParseFlags(MakeCommand(&stored), std::vector<std::string>{"--enable_prefix_caching"}));
  EXPECT_EQ(stored.caching, "true");
}

TEST(Flags, ASwitchTakesNoValue) {
  Stored stored;
  for (const char* word : {"--enable-prefix-caching=false", "--no-enable-prefix-caching=1"}) {
    const auto parsed = ParseFlags(MakeCommand(&stored), std::vector<std::string>{word});
    ASSERT_FALSE(parsed) << word;
    EXPECT_NE(parsed.error().message.find("enable-prefix-caching"), std::string::npos);
  }
  EXPECT_EQ(stored.caching, "");
}

TEST(Flags, UnknownNamesTheNearest) {
  Stored stored;
  const auto parsed =
      ParseFlags(MakeCommand(&stored), std::vector<std::string>{"--max-modle-len=3"});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().reason, "unknown_flag");
  EXPECT_NE(parsed.error().message.find("did you mean --max-model-len?"), std::string::npos);
  const auto far = ParseFlags(MakeCommand(&stored), std::vector<std::string>{"--zzzzzzzz"});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().message.find("did you mean"), std::string::npos);
}

TEST(Flags, MissingValue) {
  Stored stored;
  const auto parsed = ParseFlags(MakeCommand(&stored), std::vector<std::string>{"--host"});
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("--host: a value is missing"), std::string::npos);
}

}  // namespace
}  // namespace vivace::cli
