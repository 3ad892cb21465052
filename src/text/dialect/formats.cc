#include "text/dialect/formats.h"

#include <iterator>

namespace vivace::dialect {
namespace {

// clang-format off
constexpr ToolFormat kFormats[] = {
    // gpt-oss. https://cookbook.openai.com/articles/openai-harmony
    {.name = "harmony",
     .template_marks = {"<|channel|>", "<|message|>"},
     .shape = CallShape::kHarmony},
    // DeepSeek V3.2: encoding/encoding_dsv32.py of deepseek-ai/DeepSeek-V3.2.
    {.name = "deepseek_v3_2",
     .template_marks = {"｜DSML｜", "function_calls"},
     .shape = CallShape::kXml,
     .section_begin = "<｜DSML｜function_calls>", .section_end = "</｜DSML｜function_calls>",
     .call_begin = "<｜DSML｜invoke name=\"", .call_end = "</｜DSML｜invoke>",
     .xml = {.name_begin = "", .name_end = "\">", .key_begin = "<｜DSML｜parameter name=\"",
             .key_end = ">", .value_begin = "", .value_end = "</｜DSML｜parameter>", .call_end = "",
             .says_text = "\" string=\"true\"", .says_json = "\" string=\"false\"",
             .keeps_breaks = true},
     .spelling = {"<｜DSML｜function_calls>\n", "<｜DSML｜invoke name=\"@\">\n",
                  "</｜DSML｜invoke>\n", "", "</｜DSML｜function_calls>", "deepseek_xml"}},
    // DeepSeek V3, R1: the name behind the type, arguments in a fence.
    {.name = "deepseek",
     .template_marks = {"<｜tool▁call▁begin｜>", "```json"},
     .shape = CallShape::kNamed,
     .section_begin = "<｜tool▁calls▁begin｜>", .section_end = "<｜tool▁calls▁end｜>",
     .call_begin = "<｜tool▁call▁begin｜>", .call_end = "<｜tool▁call▁end｜>",
     .name_rule = {.after = "<｜tool▁sep｜>", .before = {"\n", "```"}},
     .spelling = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>@\n```json\n",
                  "\n```<｜tool▁call▁end｜>", "\n", "<｜tool▁calls▁end｜>"}},
    // DeepSeek V3.1.
    {.name = "deepseek_v3_1",
     .template_marks = {"<｜tool▁call▁begin｜>", ""},
     .shape = CallShape::kNamed,
     .section_begin = "<｜tool▁calls▁begin｜>", .section_end = "<｜tool▁calls▁end｜>",
     .call_begin = "<｜tool▁call▁begin｜>", .call_end = "<｜tool▁call▁end｜>",
     .name_rule = {.after = "", .before = {"<｜tool▁sep｜>", ""}},
     .spelling = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>@<｜tool▁sep｜>",
                  "<｜tool▁call▁end｜>", "", "<｜tool▁calls▁end｜>"}},
    // Kimi K2: functions.NAME:INDEX.
    {.name = "kimi",
     .template_marks = {"<|tool_call_argument_begin|>", ""},
     .shape = CallShape::kNamed,
     .section_begin = "<|tool_calls_section_begin|>", .section_end = "<|tool_calls_section_end|>",
     .call_begin = "<|tool_call_begin|>", .call_end = "<|tool_call_end|>",
     .name_rule = {.after = "functions.", .before = {":", "<|tool_call_argument_begin|>"}},
     .spelling = {"<|tool_calls_section_begin|>",
                  "<|tool_call_begin|>functions.@:0<|tool_call_argument_begin|>",
                  "<|tool_call_end|>", "", "<|tool_calls_section_end|>"}},
    // Mistral from tokenizer v11 on.
    {.name = "mistral_args",
     .template_marks = {"[TOOL_CALLS]", "[ARGS]"},
     .shape = CallShape::kNamed,
     .call_begin = "[TOOL_CALLS]",
     .name_rule = {.after = "", .before = {"[CALL_ID]", "[ARGS]"}},
     .spelling = {"", "[TOOL_CALLS]@[ARGS]", "", "", ""},
     .short_ids = true},
    // Mistral before that; the newer form is read as well.
    {.name = "mistral",
     .template_marks = {"[TOOL_CALLS]", ""},
     .shape = CallShape::kNamed,
     .call_begin = "[TOOL_CALLS]",
     .name_rule = {.after = "", .before = {"[CALL_ID]", "[ARGS]"}},
     .spelling = {"[TOOL_CALLS][", R"({"name": "@", "arguments": )", "}", ", ", "]"},
     .short_ids = true},
    // MiniMax M2, M2.1, M2.5: docs/tool_calling_guide.md of MiniMax-AI/MiniMax-M2.5.
    {.name = "minimax",
     .template_marks = {"<minimax:tool_call>", ""},
     .shape = CallShape::kXml,
     .section_begin = "<minimax:tool_call>", .section_end = "</minimax:tool_call>",
     .call_begin = "<invoke name=\"", .call_end = "</invoke>",
     .xml = {.name_begin = "", .name_end = "\">", .key_begin = "<parameter name=\"",
             .key_end = "\">", .value_begin = "", .value_end = "</parameter>", .call_end = ""},
     .spelling = {"<minimax:tool_call>\n", "<invoke name=\"@\">\n", "</invoke>\n", "",
                  "</minimax:tool_call>", "minimax_xml"}},
    // GLM 4.5.
    {.name = "glm",
     .template_marks = {"<tool_call>", "<arg_key>"},
     .shape = CallShape::kXml,
     .call_begin = "<tool_call>", .call_end = "</tool_call>",
     .xml = {.name_begin = "", .name_end = "\n", .key_begin = "<arg_key>", .key_end = "</arg_key>",
             .value_begin = "<arg_value>", .value_end = "</arg_value>", .call_end = ""},
     .spelling = {"", "<tool_call>@\n", "</tool_call>", "\n", "", "glm_xml"}},
    // Qwen3-Coder and Qwen 3.5.
    {.name = "qwen3_coder",
     .template_marks = {"<function=", "<parameter="},
     .shape = CallShape::kXml,
     .call_begin = "<tool_call>", .call_end = "</tool_call>", .other_begin = "<function=",
     .xml = {.name_begin = "<function=", .name_end = ">", .key_begin = "<parameter=",
             .key_end = ">", .value_begin = "", .value_end = "</parameter>",
             .call_end = "</function>"},
     .spelling = {"", "<tool_call>\n<function=@>\n", "\n</function>\n</tool_call>", "\n", "",
                  "qwen_xml"}},
    // Hermes, Qwen 2.5 and 3, EXAONE 4, Granite 4, SmolLM3.
    {.name = "hermes",
     .template_marks = {"<tool_call>", ""},
     .shape = CallShape::kJson,
     .call_begin = "<tool_call>", .call_end = "</tool_call>",
     .spelling = {"", "<tool_call>\n{\"name\": \"@\", \"arguments\": ", "}\n</tool_call>", "\n",
                  ""}},
    // Gemma 4. Its call marks are not pairs of one form.
    {.name = "gemma4",
     .template_marks = {"<|tool_call>", "<tool_call|>"},
     .shape = CallShape::kGemma,
     .call_begin = "<|tool_call>", .call_end = "<tool_call|>",
     .spelling = {"", "<|tool_call>call:@", "<tool_call|>", "", "", "gemma"}},
    // FunctionGemma.
    {.name = "function_gemma",
     .template_marks = {"<start_function_call>", ""},
     .shape = CallShape::kGemma,
     .call_begin = "<start_function_call>", .call_end = "<end_function_call>",
     .spelling = {"", "<start_function_call>call:@", "<end_function_call>", "", ""}},
    // Gemma 3 as its guide prompts it: Python or JSON in a fence.
    {.name = "gemma3",
     .template_marks = {"tool_code", ""},
     .shape = CallShape::kPython,
     .call_begin = "```tool_code\n", .call_end = "```",
     .spelling = {"", "```tool_code\n{\"name\": \"@\", \"parameters\": ", "}\n```", "\n", ""}},
    // LFM2.
    {.name = "lfm2",
     .template_marks = {"<|tool_call_start|>", ""},
     .shape = CallShape::kPython,
     .call_begin = "<|tool_call_start|>", .call_end = "<|tool_call_end|>",
     .spelling = {"<|tool_call_start|>[", R"({"name": "@", "arguments": )", "}", ", ",
                  "]<|tool_call_end|>"}},
    // Cohere's Command.
    {.name = "cohere",
     .template_marks = {"<|START_ACTION|>", ""},
     .shape = CallShape::kJson,
     .call_begin = "<|START_ACTION|>", .call_end = "<|END_ACTION|>",
     .spelling = {"<|START_ACTION|>[", R"({"tool_call_id": "0", "tool_name": "@", "parameters": )",
                  "}", ", ", "]<|END_ACTION|>"}},
    // Phi-4-mini.
    {.name = "phi4",
     .template_marks = {"<|tool_call|>", "<|/tool_call|>"},
     .shape = CallShape::kJson,
     .call_begin = "<|tool_call|>", .call_end = "<|/tool_call|>",
     .spelling = {"<|tool_call|>[", R"({"name": "@", "arguments": )", "}", ", ",
                  "]<|/tool_call|>"}},
    // Granite 3.
    {.name = "granite",
     .template_marks = {"<|tool_call|>", ""},
     .shape = CallShape::kJson,
     .call_begin = "<|tool_call|>",
     .spelling = {"<|tool_call|>[", R"({"name": "@", "arguments": )", "}", ", ", "]"}},
    // Llama 4, and 3.2 where it is prompted so: models/llama4/prompt_format.md of
    // meta-llama/llama-models, vLLM's tool_chat_template_llama4_pythonic.jinja.
    {.name = "llama_pythonic",
     .template_marks = {"[func_name1(", ""},
     .shape = CallShape::kPython,
     .spelling = {"", R"({"name": "@", "parameters": )", "}", "; ", ""}},
    // Llama 3.1 and later: the whole answer is the call.
    {.name = "llama3",
     .template_marks = {"<|python_tag|>", ""},
     .shape = CallShape::kJson,
     .other_begin = "<|python_tag|>",
     .spelling = {"", R"({"name": "@", "parameters": )", "}", "; ", ""}},
    {.name = "llama3",
     .template_marks = {"\"parameters\": dictionary", ""},
     .shape = CallShape::kJson,
     .other_begin = "<|python_tag|>",
     .spelling = {"", R"({"name": "@", "parameters": )", "}", "; ", ""}},
};

constexpr ToolFormat kGeneric = {
    .name = "generic",
    .shape = CallShape::kJson,
    .spelling = {"", R"({"name": "@", "arguments": )", "}", "\n", ""}};
// clang-format on

constexpr ToolFormat kNone = {.name = "none"};

constexpr ReasoningFormat kReasoning[] = {
    {"harmony", "<|channel|>analysis<|message|>", "<|end|>"},
    {"mistral", "[THINK]", "[/THINK]"},
    {"cohere", "<|START_THINKING|>", "<|END_THINKING|>"},
    {"seed", "<seed:think>", "</seed:think>"},
    {"gemma4", "<|channel>thought\n", "<channel|>"},
    {"think", "<think>", "</think>", true},
};

}  // namespace

std::span<const ToolFormat> ToolFormats() { return kFormats; }
const ToolFormat& GenericFormat() { return kGeneric; }
const ToolFormat& NoToolFormat() { return kNone; }
std::span<const ReasoningFormat> ReasoningFormats() { return kReasoning; }

}  // namespace vivace::dialect
