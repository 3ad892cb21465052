// The grammars of forced calls, compiled and walked: whatever they let a model write is read back
// as calls that obey their schemas, in every format.
#include "server/openai/output_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "grammar/grammar_testing.h"
#include "text/dialect/dialect_testing.h"

namespace vivace::server {
namespace {

using dialect::ByteTokenizer;
using dialect::CallShape;
using dialect::TemplateWith;
using dialect::ToolFormat;
using ::testing::AnyOf;

std::shared_ptr<const dialect::ToolSet> Tools() {
  auto tools = std::make_shared<dialect::ToolSet>();
  tools->tools.push_back({"weather",
                          json::parse(R"({"type":"object","properties":{"city":{"enum":["Graz",)"
                                      R"("Wien"]},"days":{"type":"integer","minimum":1,)"
                                      R"("maximum":3}},"required":["city","days"],)"
                                      R"("additionalProperties":false})"),
                          false});
  tools->tools.push_back({"now",
                          json::parse(R"({"type":"object","properties":{"utc":{"type":"boolean"}},)"
                                      R"("required":["utc"],"additionalProperties":false})"),
                          false});
  return tools;
}

// A model of one format, its marks control tokens or text, and its grammars.
struct Speaker {
  Speaker(const ToolFormat& format, bool control) {
    std::set<std::string> marks;
    for (const std::string_view mark :
         {format.section_begin, format.section_end, format.call_begin, format.call_end}) {
      // A mark with a fence or a line break is no token of any vocabulary.
      if (!mark.empty() && mark.find('`') == std::string_view::npos) marks.emplace(mark);
    }
    if (format.shape == CallShape::kHarmony) {
      marks = {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>"};
    }
    if (!control) marks.clear();
    tokenizer = ByteTokenizer({marks.begin(), marks.end()});
    const ChatTemplate chat_template = TemplateWith(std::string(format.template_marks[0]) + " " +
                                                    std::string(format.template_marks[1]));
    model.dialect = DetectDialect(&chat_template, *tokenizer);
    logits = static_cast<int32_t>(tokenizer->vocab_size());
    compiler = NewGrammarCompiler(tokenizer, logits, {});
    reading.dialect = &model.dialect;
    reading.tools = Tools();
  }

  std::shared_ptr<const CompiledGrammar> Compile(const RequestParams& params) {
    const auto grammar = GrammarOf(params, reading, model, nullptr, true);
    EXPECT_TRUE(grammar);
    auto compiled = compiler->Compile(
        grammar::testing::Spec(GrammarSpec::Kind::kStructural, grammar->structural_tag));
    EXPECT_TRUE(compiled) << compiled.error().message << " " << grammar->structural_tag;
    return compiled ? *compiled : nullptr;
  }

  std::shared_ptr<const Tokenizer> tokenizer;
  ServedModel model;
  int32_t logits = 0;
  std::unique_ptr<GrammarCompiler> compiler;
  OutputReading reading;
};

void ExpectCalls(const dialect::Told& told, const std::string& text) {
  for (const auto& call : told.calls) {
    const auto arguments = grammar::testing::Parse(call.arguments);
    ASSERT_TRUE(arguments && arguments->is_object()) << text;
    const json::object& members = arguments->get_object();
    if (call.name == "now") {
      ASSERT_TRUE(members.size() == 1 && members.at("utc").is_bool()) << text;
      continue;
    }
    ASSERT_EQ(call.name, "weather") << text;
    ASSERT_EQ(members.size(), 2u) << text;
    EXPECT_THAT(std::string(members.at("city").as_string()), AnyOf("Graz", "Wien")) << text;
    EXPECT_THAT(members.at("days").as_int64(), AnyOf(1, 2, 3)) << text;
  }
}

class OutputRulesTest : public ::testing::TestWithParam<bool> {};

TEST_P(OutputRulesTest, ForcedCallsAreCalls) {
  std::vector<ToolFormat> formats(dialect::ToolFormats().begin(), dialect::ToolFormats().end());
  formats.push_back(dialect::GenericFormat());
  for (const ToolFormat& format : formats) {
    SCOPED_TRACE(format.name);
    Speaker speaker(format, GetParam());
    ASSERT_EQ(speaker.model.dialect.tools->name, format.name);
    RequestParams named, one, many;
    named.tool_choice = ToolChoice::kNamed;
    named.tool_name = "now";
    one.tool_choice = many.tool_choice = ToolChoice::kRequired;
    one.parallel_tool_calls = false;
    for (const RequestParams* params : {&named, &one, &many}) {
      const auto grammar = speaker.Compile(*params);
      ASSERT_NE(grammar, nullptr);
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const auto walk =
            grammar::testing::RandomWalk(*grammar, *speaker.tokenizer, speaker.logits, seed, 2'000);
        if (!walk.ended) continue;
        const dialect::Told told =
            dialect::Parse(speaker.model.dialect, walk.text, static_cast<uint32_t>(seed),
                           ReasoningStart::kOptional, speaker.reading.tools);
        EXPECT_GE(told.calls.size(), 1u) << walk.text;
        if (params != &many) {
          EXPECT_EQ(told.calls.size(), 1u) << walk.text;
        }
        if (params == &named && !told.calls.empty()) {
          EXPECT_EQ(told.calls[0].name, "now");
        }
        // Harmony's models may say a word before they call.
        if (format.name != "harmony") {
          EXPECT_EQ(told.content, "") << walk.text;
        }
        ExpectCalls(told, walk.text);
      }
    }
  }
}

// Schemas that say nothing of objects, or of other values too: arguments are an object all the
// same.
TEST_P(OutputRulesTest, ArgumentsAreAnObjectWhateverTheSchemaLeavesOut) {
  for (const char* schema : {"{}", R"({"description":"x"})",
                             R"({"anyOf":[{"type":"object","properties":{"a":{"const":1}}},)"
                             R"({"type":"string"},{"type":"array"}]})"}) {
    SCOPED_TRACE(schema);
    auto tools = std::make_shared<dialect::ToolSet>();
    tools->tools.push_back({"w", json::parse(schema), false});
    for (const ToolFormat& format : dialect::ToolFormats()) {
      SCOPED_TRACE(format.name);
      // Refused by name where arguments are not JSON.
      if (format.spelling.style != "json" && schema[2] == 'a') continue;
      Speaker speaker(format, GetParam());
      speaker.reading.tools = tools;
      RequestParams params;
      params.tool_choice = ToolChoice::kRequired;
      params.parallel_tool_calls = false;
      const auto grammar = speaker.Compile(params);
      ASSERT_NE(grammar, nullptr);
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const auto walk =
            grammar::testing::RandomWalk(*grammar, *speaker.tokenizer, speaker.logits, seed, 400);
        if (!walk.ended) continue;
        const dialect::Told told =
            dialect::Parse(speaker.model.dialect, walk.text, static_cast<uint32_t>(seed),
                           ReasoningStart::kOptional, tools);
        ASSERT_EQ(told.calls.size(), 1u) << walk.text;
        // Free texts of a vocabulary of bytes are not all UTF-8.
        const std::string& arguments = told.calls[0].arguments;
        EXPECT_TRUE(arguments.starts_with('{') && arguments.ends_with('}')) << walk.text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Marks, OutputRulesTest, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "AsTokens" : "AsText");
});

std::vector<TokenId> Allowed(TokenConstraint* constraint, int32_t logits) {
  std::vector<uint32_t> mask((static_cast<size_t>(logits) + 31) / 32, ~0u);
  std::vector<TokenId> ids;
  if (!constraint->FillMask(1'000, mask)) return {-1};
  for (TokenId id = 0; id < logits; ++id) {
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
  }
  return ids;
}

TEST(OutputRules, TextIsFreeUntilACallOpens) {
  const auto formats = dialect::ToolFormats();
  const auto hermes = std::find_if(formats.begin(), formats.end(),
                                   [](const ToolFormat& f) { return f.name == "hermes"; });
  for (const bool control : {false, true}) {
    Speaker speaker(*hermes, control);
    const auto grammar = speaker.Compile({});
    ASSERT_NE(grammar, nullptr);
    const auto constraint = grammar->NewConstraint({});
    for (const char c : std::string("Hi {\"name\": ")) {
      ASSERT_TRUE(constraint->Accept(static_cast<TokenId>(c)));
    }
    if (control) {
      ASSERT_TRUE(constraint->Accept(*speaker.model.dialect.MarkTokenOf("<tool_call>")));
    } else {
      for (const char c : std::string("<tool_call>")) {
        ASSERT_TRUE(constraint->Accept(static_cast<TokenId>(c)));
      }
    }
    EXPECT_THAT(Allowed(constraint.get(), speaker.logits), ::testing::ElementsAre('\n'));
  }
}

TEST(OutputRules, WhatNeedsAGrammar) {
  ServedModel model;
  const ChatTemplate chat_template = TemplateWith("Tools");
  model.dialect = DetectDialect(&chat_template, *ByteTokenizer({}));
  OutputReading reading;
  RequestParams params;
  EXPECT_FALSE(GrammarOf(params, reading, model, nullptr, true));
  auto tools = std::make_shared<dialect::ToolSet>(*Tools());
  reading.tools = tools;
  // Calls without marks: an answer in JSON stays one.
  EXPECT_FALSE(GrammarOf(params, reading, model, nullptr, true));
  EXPECT_FALSE(MustObeySchemas(params, tools.get()));
  tools->tools[0].strict = true;
  EXPECT_TRUE(GrammarOf(params, reading, model, nullptr, true));
  EXPECT_TRUE(MustObeySchemas(params, tools.get()));
  tools->tools[0].strict = false;
  params.tool_choice = ToolChoice::kRequired;
  EXPECT_TRUE(GrammarOf(params, reading, model, nullptr, true));
  EXPECT_TRUE(MustObeySchemas(params, tools.get()));
}

}  // namespace
}  // namespace vivace::server
