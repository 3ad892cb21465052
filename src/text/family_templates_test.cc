// Templates in the manner of every family of models, over many conversations, against what jinja2
// made of them (tests/oracles/make_family_chats.py).
#include <gtest/gtest.h>

#include "support/oracle_time.h"
#include "text/chat_template.h"
#include "text/text_testing.h"

namespace vivace {
namespace {

namespace json = boost::json;

const std::string kData = testing::kSourceDir + "/src/text/jinja/testdata/";

const json::object& Data() {
  static const json::value data = json::parse(testing::ReadFile(kData + "family_chats.json"));
  return data.as_object();
}

std::vector<std::string> Families() {
  std::vector<std::string> names;
  for (const json::value& name : Data().at("families").as_array()) {
    names.emplace_back(name.as_string());
  }
  return names;
}

class FamilyTemplate : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyTemplate, RendersLikeJinja2) {
  const auto parsed =
      ChatTemplate::Parse(testing::ReadFile(kData + "families/" + GetParam() + ".jinja"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  size_t compared = 0;
  for (const json::value& one : Data().at("chats").as_array()) {
    SCOPED_TRACE(one.at("name").as_string());
    const json::value* expected = one.at("text").as_object().if_contains(GetParam());
    if (expected == nullptr) continue;
    ++compared;
    ChatRenderInput input;
    input.messages = one.at("messages").as_array();
    input.tools = one.at("tools");
    input.documents = one.at("documents");
    input.add_generation_prompt = one.at("add_generation_prompt").as_bool();
    input.extra = one.at("extra").as_object();
    input.bos_token = "<bos>";
    input.eos_token = "<eos>";
    input.now = testing::OracleTime();
    const auto prompt = parsed->Render(input);
    if (expected->is_null()) {
      EXPECT_FALSE(prompt.has_value()) << prompt->text;
    } else if (!prompt.has_value()) {
      ADD_FAILURE() << prompt.error().reason << ": " << prompt.error().message;
    } else {
      EXPECT_EQ(prompt->text, std::string_view(expected->as_string()));
    }
  }
  EXPECT_GE(compared, 44u);
}

INSTANTIATE_TEST_SUITE_P(, FamilyTemplate, ::testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace vivace
