#include "text/dialect/output_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "text/dialect/dialect_testing.h"

namespace vivace::dialect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Call = Told::Call;

// The marks that each family's published template carries, enough to know it.
constexpr std::string_view kHermes = "<tool_call>\n{\"name\": <function-name>}\n</tool_call>";
constexpr std::string_view kLlama =
    R"(Respond in the format {"name": function name, "parameters": dictionary of argument name})";
constexpr std::string_view kMistral = "[AVAILABLE_TOOLS] [TOOL_CALLS] [/TOOL_RESULTS]";
constexpr std::string_view kMistralArgs = "[TOOL_CALLS][ARGS]";
constexpr std::string_view kCoder = "<tool_call>\n<function=example>\n<parameter=p>\nvalue";
constexpr std::string_view kDeepSeek =
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>\n```json\n";
constexpr std::string_view kDeepSeek31 = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>";
constexpr std::string_view kHarmony = "<|start|>assistant<|channel|>final<|message|>";
constexpr std::string_view kGemma3 = "```tool_code";
constexpr std::string_view kGemma4 = "<|tool_call>call:<tool_call|>";
constexpr std::string_view kGlm = "<tool_call>{function-name}\n<arg_key>";
constexpr std::string_view kKimi = "<|tool_call_begin|><|tool_call_argument_begin|>";
constexpr std::string_view kLfm2 = "<|tool_call_start|><|tool_call_end|>";
constexpr std::string_view kPhi4 = "<|tool_call|>[<|/tool_call|>";
constexpr std::string_view kMiniMax = "<minimax:tool_call>\n<invoke name=\"tool-name-1\">";
constexpr std::string_view kDsml =
    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"$FUNCTION_NAME\">";
constexpr std::string_view kPythonic =
    "Use exact format: [func_name1(param1=value1), func_name2(...)]";
constexpr std::string_view kGeneric = "Tools: ";

struct Sample {
  std::string_view about;
  std::string_view marks;
  std::string_view text;
  std::string_view content;
  std::string_view reasoning;
  std::vector<Call> calls;
};

// clang-format off
const std::vector<Sample>& Samples() {
  static const std::vector<Sample> samples = {
      {"plain text is left alone", kHermes, "  Hi < there <tool \n\n", "  Hi < there <tool \n\n", "", {}},
      {"hermes", kHermes, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Graz\"}}\n</tool_call>",
       "", "", {{"weather", "{\"city\": \"Graz\"}"}}},
      {"hermes, text and two calls", kHermes,
       "Let me look.\n\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a}\\\"b\"}}\n</tool_call>\n"
       "<tool_call>{\"arguments\": {}, \"name\": \"now\"}</tool_call>\nDone.",
       "Let me look.Done.", "", {{"weather", "{\"city\": \"a}\\\"b\"}"}, {"now", "{}"}}},
      {"hermes, arguments as a string", kHermes,
       "<tool_call>{\"name\":\"now\",\"arguments\":\"{\\\"a\\\": 1}\"}</tool_call>", "", "", {{"now", "{\"a\": 1}"}}},
      {"hermes, no arguments", kHermes, "<tool_call>{\"name\":\"now\"}</tool_call>", "", "", {{"now", "{}"}}},
      {"hermes, null arguments", kHermes, "<tool_call>{\"name\":\"now\",\"arguments\":null}</tool_call>", "", "", {{"now", "{}"}}},
      {"hermes, a brace too many", kHermes,
       "<tool_call>{\"name\":\"now\",\"arguments\":{}}}\n</tool_call>", "", "", {{"now", "{}"}}},
      {"hermes, a brace too few", kHermes,
       "<tool_call>\n{\"name\":\"now\",\"arguments\":{\"a\": 1}\n</tool_call>\nok", "ok", "", {{"now", "{\"a\": 1}"}}},
      {"hermes, a brace too few, nothing behind", kHermes,
       "<tool_call>{\"name\":\"now\",\"arguments\":{}</tool_call>", "", "", {{"now", "{}"}}},
      {"hermes, a brace too few and no end mark", kHermes,
       "<tool_call>{\"name\":\"now\",\"arguments\":{} </tool", " </tool", "", {{"now", "{}"}}},
      {"phi4, a brace too few in a list", kPhi4,
       "<|tool_call|>[{\"name\":\"now\",\"arguments\":{}]<|/tool_call|>", "", "", {{"now", "{}"}}},
      {"hermes, end mark missing", kHermes, "<tool_call>{\"name\":\"now\",\"arguments\":{}}\nok", "ok", "", {{"now", "{}"}}},
      {"hermes, no JSON", kHermes, "a <tool_call>f(x)</tool_call> b", "a <tool_call>f(x)</tool_call> b", "", {}},
      {"hermes, no name", kHermes, "<tool_call>{\"arguments\": {}}</tool_call>", "<tool_call>{\"arguments\": {}}</tool_call>", "", {}},
      {"hermes, a name that is none", kHermes, "<tool_call>{\"name\": \"a b\", \"arguments\": {}}</tool_call>",
       "<tool_call>{\"name\": \"a b\", \"arguments\": {}}</tool_call>", "", {}},
      {"hermes, cut in its name", kHermes, "Hm <tool_call>\n{\"name\": \"wea", "Hm <tool_call>\n{\"name\": \"wea", "", {}},
      {"hermes, cut in its arguments", kHermes, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Gr",
       "", "", {{"weather", "{\"city\": \"Gr"}}},
      {"hermes, arguments go wrong", kHermes, "<tool_call>{\"name\": \"now\", \"arguments\": {a: 1}}</tool_call> x",
       "x", "", {{"now", "{a: 1}}"}}},
      {"hermes with a thought", "<tool_call></think>", "<think>\nI see <tool_call>.\n</think>\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
       "", "I see <tool_call>.", {{"now", "{}"}}},
      {"a thought alone, cut", "<think>", "<think>Because", "", "Because", {}},
      {"a thought, then text", "<think>", "\n<think>\nWell </b>\n</think>\n\nHi\n", "Hi\n", "Well </b>", {}},
      {"a think mark in the text", "<think>", "Write <think> first.", "Write <think> first.", "", {}},
      {"an end mark that ends nothing", "<think>", "a </think> b", "a </think> b", "", {}},
      {"llama", kLlama, "{\"name\": \"weather\", \"parameters\": {\"city\": \"Graz\"}}", "", "", {{"weather", "{\"city\": \"Graz\"}"}}},
      {"llama, two", kLlama, "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"now\", \"parameters\": {\"a\": 1}}",
       "", "", {{"now", "{}"}, {"now", "{\"a\": 1}"}}},
      {"llama, python tag", kLlama, "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}", "", "", {{"now", "{}"}}},
      {"llama, JSON that is an answer", kLlama, "{\"name\": \"Bob\", \"parameters\": {}}", "{\"name\": \"Bob\", \"parameters\": {}}", "", {}},
      {"llama, JSON later in a text", kLlama, "So: {\"name\": \"now\", \"parameters\": {}}", "So: {\"name\": \"now\", \"parameters\": {}}", "", {}},
      {"generic, a list", kGeneric, "[{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"weather\", \"arguments\": {\"city\": \"x\"}}]",
       "", "", {{"now", "{}"}, {"weather", "{\"city\": \"x\"}"}}},
      {"generic, an answer in JSON", kGeneric, " {\"temperature\": 20}", " {\"temperature\": 20}", "", {}},
      {"generic, a name of a tool but no call", kGeneric, "{\"name\": \"now\", \"age\": 3}", "{\"name\": \"now\", \"age\": 3}", "", {}},
      {"mistral", kMistral, "[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": {\"city\": \"x\"}, \"id\": \"a1b2c3d4e\"}]",
       "", "", {{"weather", "{\"city\": \"x\"}"}}},
      {"mistral, two", kMistral, "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"now\", \"arguments\": {}}]",
       "", "", {{"now", "{}"}, {"now", "{}"}}},
      {"mistral with names before", kMistralArgs, "Ok.[TOOL_CALLS]weather[ARGS]{\"city\": \"x\"}[TOOL_CALLS]now[CALL_ID]ab[ARGS]{}",
       "Ok.", "", {{"weather", "{\"city\": \"x\"}"}, {"now", "{}"}}},
      {"mistral with names before, no mark", kMistralArgs, "[TOOL_CALLS]now{}", "", "", {{"now", "{}"}}},
      {"qwen3 coder", kCoder,
       "I'll look.\n<tool_call>\n<function=weather>\n<parameter=city>\nNew\n\"York\"\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
       "<parameter=tags>\n[\"a\", 1]\n</parameter>\n<parameter=note>\nnull\n</parameter>\n<parameter=kind>\na\n</parameter>\n</function>\n</tool_call>",
       "I'll look.", "",
       {{"weather", "{\"city\": \"New\\n\\\"York\\\"\", \"days\": 3, \"tags\": [\"a\", 1], \"note\": null, \"kind\": \"a\"}"}}},
      {"qwen3 coder, no opening", kCoder, "<function=now>\n</function>\n</tool_call>", "", "", {{"now", "{}"}}},
      {"qwen3 coder, a value of no kind", kCoder,
       "<tool_call><function=weather><parameter=days>many</parameter><parameter=x>1</parameter></function></tool_call>",
       "", "", {{"weather", "{\"days\": \"many\", \"x\": \"1\"}"}}},
      {"qwen3 coder, cut", kCoder, "<tool_call><function=weather>\n<parameter=city>\nGr", "", "", {{"weather", "{\"city\": \"Gr"}}},
      {"qwen3 coder, JSON after all", kCoder, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "", "", {{"now", "{}"}}},
      {"glm", kGlm, "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Graz</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
       "", "", {{"weather", "{\"city\": \"Graz\", \"days\": 2}"}}},
      // From docs/tool_calling_guide.md of MiniMax-M2.5, but for the tools' names.
      {"minimax", kMiniMax,
       "Let me help you query the weather.\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">San Francisco</parameter>\n"
       "<parameter name=\"tags\">[\"\\\"OpenAI\\\" \\\"latest\\\"\"]</parameter>\n</invoke>\n<invoke name=\"weather\">\n<parameter name=\"city\">a < b\n</parameter>\n"
       "<parameter name=\"days\">2</parameter>\n</invoke>\n</minimax:tool_call>",
       "Let me help you query the weather.", "",
       {{"weather", "{\"city\": \"San Francisco\", \"tags\": [\"\\\"OpenAI\\\" \\\"latest\\\"\"]}"}, {"weather", "{\"city\": \"a < b\", \"days\": 2}"}}},
      {"minimax, no arguments, end marks missing", kMiniMax, "<minimax:tool_call><invoke name=\"now\"></invoke>", "", "", {{"now", "{}"}}},
      {"minimax with a thought", "<minimax:tool_call></think>", "<think>\nhm\n</think>\n\n<minimax:tool_call>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
       "", "hm", {{"now", "{}"}}},
      {"minimax, a name that is none", kMiniMax, "<minimax:tool_call><invoke name=\"a b\">", "<minimax:tool_call><invoke name=\"a b\">", "", {}},
      {"minimax, a parameter goes wrong", kMiniMax,
       "<minimax:tool_call><invoke name=\"now\"><parameter city>x</invoke></minimax:tool_call>ok", "ok", "", {{"now", "{<parameter city>x"}}},
      // As encoding_dsv32.py writes them.
      {"deepseek v3.2", kDsml,
       "On it.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">\nNew \"York\"\n</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n<｜DSML｜parameter name=\"tags\" string=\"false\">[\"a>b\", 1]</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "On it.", "", {{"weather", "{\"city\": \"\\nNew \\\"York\\\"\\n\", \"days\": 3, \"tags\": [\"a>b\", 1]}"}, {"now", "{}"}}},
      {"deepseek v3.2, text that looks like a number", kDsml,
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"days\" string=\"true\">3</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"x\" string=\"false\">many</｜DSML｜parameter>\n<｜DSML｜parameter name=\"note\" string=\"false\">\"n\"</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "", "", {{"weather", "{\"days\": \"3\", \"x\": \"many\", \"note\": \"n\"}"}}},
      {"deepseek v3.2, a kind that is not said", kDsml,
       "<｜DSML｜function_calls><｜DSML｜invoke name=\"weather\"><｜DSML｜parameter name=\"days\">3</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
       "", "", {{"weather", "{\"days\": 3}"}}},
      {"deepseek v3.2, cut", kDsml, "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Gr",
       "", "", {{"weather", "{\"city\": \"Gr"}}},
      // From models/llama4/prompt_format.md, but for the tools' names.
      {"llama pythonic", kPythonic, "[weather(city=\"San Francisco\"), weather(city='Seattle', days=7890)]",
       "", "", {{"weather", "{\"city\": \"San Francisco\"}"}, {"weather", "{\"city\": \"Seattle\", \"days\": 7890}"}}},
      {"llama pythonic, values", kPythonic, "[weather(city=\"a]) \\\" b\", tags=[1, 'x]', {\"k\": None}], note=\"\", kind=\"\"\"a\"b\"\"\")]\n",
       "", "", {{"weather", "{\"city\": \"a]) \\\" b\", \"tags\": [1, \"x]\", {\"k\": null}], \"note\": \"\", \"kind\": \"a\\\"b\"}"}}},
      {"llama pythonic, no arguments", kPythonic, "\n[now( )]", "", "", {{"now", "{}"}}},
      {"llama pythonic, a list that is an answer", kPythonic, "[1] see (below)", "[1] see (below)", "", {}},
      {"llama pythonic, a link", kPythonic, "[now](http://x)", "[now](http://x)", "", {}},
      {"llama pythonic, a function that is no tool", kPythonic, "[later(a=1)]", "[later(a=1)]", "", {}},
      {"llama pythonic, later in a text", kPythonic, "So: [now()]", "So: [now()]", "", {}},
      {"llama pythonic, no call after all", kPythonic, "[now(x)] is it", "[now(x)] is it", "", {}},
      {"llama pythonic, cut", kPythonic, "[weather(city=\"San", "[weather(city=\"San", "", {}},
      {"llama pythonic, JSON", kPythonic, "{\"name\": \"now\", \"parameters\": {}}", "", "", {{"now", "{}"}}},
      {"llama pythonic, JSON in a list", kPythonic, "[ {\"name\": \"now\", \"parameters\": {}}]", "", "", {{"now", "{}"}}},
      {"deepseek", kDeepSeek,
       "On it.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"x\"}\n```<｜tool▁call▁end｜>\n"
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "On it.", "", {{"weather", "{\"city\": \"x\"}"}, {"now", "{}"}}},
      {"deepseek, call end missing", kDeepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁calls▁end｜>Bye",
       "Bye", "", {{"now", "{}"}}},
      {"deepseek 3.1", kDeepSeek31,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "", "", {{"weather", "{\"city\": \"x\"}"}}},
      {"deepseek, nothing in the section", kDeepSeek, "<｜tool▁calls▁begin｜>hm", "<｜tool▁calls▁begin｜>hm", "", {}},
      {"kimi", kKimi,
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>",
       "", "", {{"weather", "{\"city\": \"x\"}"}}},
      {"harmony, answer", kHarmony,
       "<|channel|>analysis<|message|>Think <b>.<|end|><|start|>assistant<|channel|>final<|message|>Hi!<|return|>", "Hi!", "Think <b>.", {}},
      {"harmony, call", kHarmony,
       "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"x\"}<|call|>",
       "", "Look.", {{"weather", "{\"city\": \"x\"}"}}},
      {"harmony, recipient in the role", kHarmony,
       " to=functions.now<|channel|>commentary json<|message|>", "", "", {{"now", "{}"}}},
      {"harmony, preamble and two calls", kHarmony,
       "<|channel|>commentary<|message|>I will.<|end|><|start|>assistant<|channel|>commentary to=functions.now<|message|><|call|><|start|>assistant<|channel|>commentary to=functions.now<|message|>{}<|call|>",
       "I will.", "", {{"now", "{}"}, {"now", "{}"}}},
      {"harmony, no header", kHarmony, "Hello <|", "Hello <|", "", {}},
      {"harmony, cut in a header", kHarmony, "<|channel|>analysis<|message|>a<|end|><|start|>assis", "", "a", {}},
      {"harmony, cut in a call's header", kHarmony, "<|channel|>commentary to=functions.no", "commentary to=functions.no", "", {}},
      {"gemma 3", kGemma3, "```tool_code\nprint(weather(city='Gr\\'az', days=2))\n```", "", "", {{"weather", "{\"city\": \"Gr'az\", \"days\": 2}"}}},
      {"gemma 3, JSON", kGemma3, "```tool_code\n{\"name\": \"now\", \"parameters\": {}}\n```", "", "", {{"now", "{}"}}},
      {"gemma 3, other code", kGemma3, "```tool_code\nx = 1\n```", "```tool_code\nx = 1\n```", "", {}},
      {"gemma 4", kGemma4, "<|tool_call>call:weather{city:<|\"|>G \"raz<|\"|>,days:3,tags:[1,{a:true}]}<tool_call|>",
       "", "", {{"weather", "{\"city\": \"G \\\"raz\", \"days\": 3, \"tags\": [1, {\"a\": true}]}"}}},
      {"lfm2", kLfm2, "<|tool_call_start|>[weather(city=\"x\", tags=[1, None]), now()]<|tool_call_end|>Checking.",
       "Checking.", "", {{"weather", "{\"city\": \"x\", \"tags\": [1, null]}"}, {"now", "{}"}}},
      {"lfm2, without its end", kLfm2, "<|tool_call_start|>[now()]", "", "", {{"now", "{}"}}},
      {"lfm2, in order", kLfm2, "<|tool_call_start|>[weather(\"x\", 2)]<|tool_call_end|>", "", "", {{"weather", "{\"city\": \"x\", \"days\": 2}"}}},
      {"lfm2, JSON", kLfm2, "<|tool_call_start|>[{\"name\": \"now\", \"arguments\": {}}]<|tool_call_end|>", "", "", {{"now", "{}"}}},
      {"phi", kPhi4, "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>", "", "", {{"now", "{}"}}},
      {"cohere", "<|START_ACTION|><|START_THINKING|>",
       "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"now\", \"parameters\": {}}\n]<|END_ACTION|>",
       "", "hm", {{"now", "{}"}}},
  };
  return samples;
}
// clang-format on

TEST(OutputParserTest, PublishedFormats) {
  for (const Sample& sample : Samples()) {
    SCOPED_TRACE(sample.about);
    const Told told = Parse(DialectOf(sample.marks), sample.text);
    EXPECT_EQ(told.content, sample.content);
    EXPECT_EQ(told.reasoning, sample.reasoning);
    EXPECT_EQ(told.calls, sample.calls);
  }
}

// However it is cut, at every byte or at random, also when the output ends anywhere.
TEST(OutputParserTest, PiecesDoNotDependOnTheCuts) {
  for (const Sample& sample : Samples()) {
    SCOPED_TRACE(sample.about);
    const Dialect dialect = DialectOf(sample.marks);
    for (size_t size = 1; size <= sample.text.size(); size += size < 40 ? 1 : 7) {
      const std::string_view text = sample.text.substr(0, size);
      const Told whole = Parse(dialect, text);
      for (uint32_t cut = 1; cut < 4; ++cut)
        EXPECT_EQ(Parse(dialect, text, cut).pieces, whole.pieces);
    }
  }
}

// Parts of outputs in any order: nothing throws or loops, cuts do not matter, and every letter that
// is not of a mark is told.
TEST(OutputParserTest, AnythingGoes) {
  constexpr std::string_view kParts[] = {"<tool_call>",
                                         "</tool_call>",
                                         "{\"name\": \"now\", ",
                                         "\"arguments\": ",
                                         "{\"a\": [1]}",
                                         "}",
                                         "]",
                                         "[",
                                         "<function=now>",
                                         "<parameter=city>",
                                         "</parameter>",
                                         "</function>",
                                         "<think>",
                                         "</think>",
                                         "[TOOL_CALLS]",
                                         "now[ARGS]",
                                         "<｜tool▁calls▁begin｜>",
                                         "<｜tool▁call▁begin｜>",
                                         "<｜tool▁call▁end｜>",
                                         "<|channel|>",
                                         "final",
                                         "<|message|>",
                                         "<|end|>",
                                         "<|start|>",
                                         " to=functions.now",
                                         "```tool_code\n",
                                         "```",
                                         "now()",
                                         "[now(",
                                         "'",
                                         "\"\"\"",
                                         ")]",
                                         "<minimax:tool_call>",
                                         "<invoke name=\"now\">",
                                         "<parameter name=\"city\">",
                                         "</invoke>",
                                         "</minimax:tool_call>",
                                         "<｜DSML｜function_calls>",
                                         "<｜DSML｜invoke name=\"",
                                         "now\">",
                                         "<｜DSML｜parameter name=\"a\" string=\"",
                                         "true\">",
                                         "false\">",
                                         "</｜DSML｜parameter>",
                                         "</｜DSML｜invoke>",
                                         "<|tool_call>",
                                         "call:now{a:1}",
                                         "<tool_call|>",
                                         " ",
                                         "\n",
                                         "word",
                                         "é",
                                         "\"",
                                         "\\",
                                         "<",
                                         ","};
  constexpr std::string_view kMarks[] = {kHermes,   kLlama,   kMistral,    kMistralArgs, kCoder,
                                         kDeepSeek, kHarmony, kDeepSeek31, kGemma3,      kGemma4,
                                         kGlm,      kGeneric, kMiniMax,    kDsml,        kPythonic};
  uint32_t state = 7;
  const auto random = [&](size_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  for (const std::string_view marks : kMarks) {
    const Dialect dialect = DialectOf(std::string(marks) + "<think>");
    for (int round = 0; round < 150; ++round) {
      std::string text;
      for (size_t part = random(14); part-- > 0;) text += kParts[random(std::size(kParts))];
      SCOPED_TRACE(text);
      const Told whole = Parse(dialect, text);
      EXPECT_EQ(Parse(dialect, text, 1).pieces, whole.pieces);
      EXPECT_EQ(Parse(dialect, text, 2 + static_cast<uint32_t>(round)).pieces, whole.pieces);
    }
  }
}

TEST(OutputParserTest, NewsComeAsEarlyAsTheyAreCertain) {
  const Dialect dialect = DialectOf(kHermes);
  const auto parser = OutputParser::New(dialect, ReasoningStart::kOptional, TestTools());
  const auto feed = [&](std::string_view text) {
    std::vector<OutputPiece> pieces;
    parser->Feed(text, &pieces);
    return pieces;
  };
  EXPECT_THAT(feed("Hi"), ElementsAre(OutputPiece{PieceKind::kContent, -1, "Hi", ""}));
  EXPECT_THAT(feed(" the"), ElementsAre(OutputPiece{PieceKind::kContent, -1, " the", ""}));
  EXPECT_THAT(feed("\n<tool_call>\n{\"name\": \"now\", \"argum"), IsEmpty());
  EXPECT_THAT(feed("ents\": {\"a"),
              ElementsAre(OutputPiece{PieceKind::kToolCall, 0, "now", ""},
                          OutputPiece{PieceKind::kToolArguments, 0, "{\"a", ""}));
  EXPECT_THAT(feed("b"), ElementsAre(OutputPiece{PieceKind::kToolArguments, 0, "b", ""}));
}

// Where its calls are complete an output that was cut is whole.
TEST(OutputParserTest, OutputsThatEndWithACall) {
  struct Case {
    std::string_view marks;
    std::string_view text;
    size_t whole_from;  // cut here or later, it ends with a call
    size_t whole_to;
  };
  const auto at = [](std::string_view text, std::string_view mark) {
    return text.find(mark) + mark.size();
  };
  constexpr std::string_view kOne =
      "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": {}}}\n</tool_call>\n  ";
  constexpr std::string_view kTwo =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\"";
  constexpr std::string_view kText =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\nSo";
  constexpr std::string_view kLaterMember =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}, \"id\": 1";
  constexpr std::string_view kXml = "<tool_call><function=now>\n</function>\n</tool_call>";
  constexpr std::string_view kSection =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
      "<｜tool▁calls▁end｜>";
  constexpr std::string_view kMessage =
      "<|channel|>commentary to=functions.now<|message|> {\"a\": 1} <|call|>";
  constexpr std::string_view kList = "[{\"name\": \"now\", \"arguments\": {}}, {\"name\"";
  const Case cases[] = {
      {kHermes, kOne, at(kOne, "{}}"), kOne.size()},
      {kHermes, kTwo, at(kTwo, "{}"), at(kTwo, "</tool_call>\n")},
      {kHermes, kText, at(kText, "{}"), at(kText, "</tool_call>\n")},
      {kHermes, kLaterMember, at(kLaterMember, "{}"), at(kLaterMember, "{}")},
      {kCoder, kXml, at(kXml, "</function>"), kXml.size()},
      {kDeepSeek31, kSection, at(kSection, "{}"), kSection.size()},
      {kHarmony, kMessage, at(kMessage, "1}"), kMessage.size()},
      {kGeneric, kList, at(kList, "{}"), at(kList, "{}}")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    for (size_t size = 0; size <= c.text.size(); ++size) {
      const std::string_view text = c.text.substr(0, size);
      const bool whole = Parse(DialectOf(c.marks), text).ends_with_call;
      // Inside a mark that may begin another call or end this one nobody knows.
      const bool in_mark = text.rfind('<') != std::string_view::npos &&
                           text.find('>', text.rfind('<')) == std::string_view::npos;
      if (in_mark) continue;
      EXPECT_EQ(whole, size >= c.whole_from && size <= c.whole_to) << size;
    }
  }
  EXPECT_FALSE(Parse(DialectOf(kHermes), "Hi").ends_with_call);
  EXPECT_TRUE(Parse(DialectOf(kLfm2), "<|tool_call_start|>[now()]").ends_with_call);
  EXPECT_FALSE(Parse(DialectOf(kLfm2), "<|tool_call_start|>[now(").ends_with_call);
}

TEST(OutputParserTest, AThoughtThatThePromptHasOpened) {
  const Dialect dialect = DialectOf("<think>");
  Told told = Parse(dialect, "I see.\n</think>\n\nYes.", 0, ReasoningStart::kOpen);
  EXPECT_EQ(told.reasoning, "I see.");
  EXPECT_EQ(told.content, "Yes.");
  told = Parse(dialect, "<think>\nI see", 1, ReasoningStart::kOpen);
  EXPECT_EQ(told.reasoning, "I see");
  EXPECT_EQ(told.content, "");
}

TEST(OutputParserTest, WithoutToolsCallsAreText) {
  constexpr std::string_view kText =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
  const Told told = Parse(DialectOf(kHermes), kText, 0, ReasoningStart::kOptional, nullptr);
  EXPECT_EQ(told.content, kText);
  EXPECT_THAT(told.calls, IsEmpty());
}

TEST(OutputParserTest, ControlTokensThatStandAloneAreNoText) {
  const Dialect dialect =
      DialectOf("[TOOL_CALLS] [THINK]", {"[TOOL_CALLS]", "[THINK]", "[/THINK]", "[ARGS]"});
  const Told told = Parse(dialect, "a[/THINK]b[ARGS] c[THINK]d[/THINK]e");
  EXPECT_EQ(told.content, "ab ce");
  EXPECT_EQ(told.reasoning, "d");
}

// Llama 4 puts its calls between two control tokens, or leaves them out.
TEST(OutputParserTest, PythonTokensAroundAList) {
  const Dialect dialect = DialectOf(kPythonic, {"<|python_start|>", "<|python_end|>"});
  for (const std::string_view text : {"<|python_start|>[now()]<|python_end|>", "[now()]"}) {
    const Told told = Parse(dialect, text, 1);
    EXPECT_EQ(told.content, "") << text;
    EXPECT_THAT(told.calls, ElementsAre(Call{"now", "{}"})) << text;
    EXPECT_TRUE(told.ends_with_call) << text;
  }
}

TEST(OutputParserTest, WhatWaitsIsBounded) {
  const Dialect dialect = DialectOf(kHermes);
  const std::string spaces(limits::kMaxHeldSpaceBytes * 2, ' ');
  EXPECT_EQ(Parse(dialect, spaces, 1).content, spaces);
  for (const size_t extra : {size_t{0}, size_t{1}}) {
    const std::string name(limits::kMaxToolNameBytes + extra, 'n');
    const std::string call = "<tool_call>{\"name\":\"" + name + "\"}</tool_call>";
    EXPECT_EQ(Parse(dialect, call).calls.size(), 1 - extra);
  }
  const auto parser = OutputParser::New(dialect, ReasoningStart::kOptional, TestTools());
  std::vector<OutputPiece> pieces;
  parser->Feed("<tool_call>{\"" + std::string(limits::kMaxCallHeaderBytes, 'k'), &pieces);
  EXPECT_FALSE(pieces.empty());  // it gave up
  const std::string open(limits::kMaxCallBufferBytes + 1, 'x');
  EXPECT_EQ(Parse(DialectOf(kGemma4), "<|tool_call>" + open).content, "<|tool_call>" + open);
  const std::string listed = "[now(a=\"" + std::string(limits::kMaxCallBufferBytes, 'x');
  EXPECT_EQ(Parse(DialectOf(kPythonic), listed).content, listed);
  const std::string nested = "[now(" + std::string(limits::kMaxArgumentDepth, '[');
  EXPECT_EQ(Parse(DialectOf(kPythonic), nested).content, nested);
  const std::string long_name = "[" + std::string(limits::kMaxToolNameBytes + 1, 'n');
  EXPECT_EQ(Parse(DialectOf(kPythonic), long_name).content, long_name);
  // Nesting: what is deeper than allowed is kept as it was written.
  const std::string deep(limits::kMaxArgumentDepth + 1, '[');
  const Told told = Parse(dialect, "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\":" + deep);
  EXPECT_EQ(told.calls[0].arguments, "{\"a\":" + deep);
}

}  // namespace
}  // namespace vivace::dialect
