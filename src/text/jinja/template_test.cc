#include "text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <boost/json.hpp>
#include <filesystem>
#include <functional>

#include "base/limits.h"
#include "support/oracle_time.h"
#include "text/text_testing.h"

namespace vivace::jinja {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

json::value ReadTestData(const char* name) {
  return json::parse(testing::ReadFile(testing::kSourceDir + "/src/text/jinja/testdata/" + name));
}

Result<RenderedPrompt> RenderWith(std::string_view source, const json::object& values) {
  VIVACE_ASSIGN(const Template parsed, Template::Parse(source));
  std::vector<Variable> variables;
  for (const auto& member : values) {
    variables.push_back({{member.key().data(), member.key().size()}, &member.value(), false});
  }
  return parsed.Render(variables, testing::OracleTime());
}

std::string Text(std::string_view source, const json::object& values = {}) {
  const auto prompt = RenderWith(source, values);
  return prompt ? prompt->text : "error: " + prompt.error().reason;
}

std::string Reason(std::string_view source, const json::object& values = {}) {
  const auto prompt = RenderWith(source, values);
  return prompt ? "none" : prompt.error().reason;
}

// The rendered text with request bytes in [brackets].
std::string Marked(std::string_view source, const json::object& values) {
  const auto prompt = RenderWith(source, values);
  if (!prompt) return "error: " + prompt.error().message;
  std::string out;
  size_t at = 0;
  for (const Segment& segment : prompt->segments) {
    EXPECT_EQ(segment.begin, at);
    at = segment.end;
    const std::string piece = prompt->text.substr(segment.begin, segment.end - segment.begin);
    out += segment.trusted ? piece : "[" + piece + "]";
  }
  EXPECT_EQ(at, prompt->text.size());
  return out;
}

TEST(JinjaTemplate, RendersWhatJinja2Renders) {
  const json::value data = ReadTestData("cases.json");
  const json::object& variables = data.at("variables").as_object();
  const json::array& cases = data.at("cases").as_array();
  ASSERT_GT(cases.size(), 900u);
  for (const json::value& one : cases) {
    const std::string_view source = one.at("template").as_string();
    SCOPED_TRACE(source);
    const auto prompt = RenderWith(source, variables);
    if (one.at("text").is_null()) {
      EXPECT_FALSE(prompt.has_value()) << prompt->text;
    } else {
      ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
      EXPECT_EQ(prompt->text, std::string_view(one.at("text").as_string()));
    }
  }
}

TEST(JinjaTemplate, MalformedTemplatesGetTheRightVerdict) {
  const fs::path folder = fs::path(testing::kSharedDir) / "cases/bad";
  if (!fs::exists(folder)) GTEST_SKIP() << "the malformed cases (../shared/cases/bad) are not here";
  const json::object values = {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                               {"add_generation_prompt", true}};
  int seen = 0;
  const json::value manifest = json::parse(testing::ReadFile((folder / "manifest.json").string()));
  for (const json::value& one : manifest.at("cases").as_array()) {
    const std::string name(one.at("name").as_string());
    if (!name.starts_with("template/")) continue;
    SCOPED_TRACE(name);
    ++seen;
    const std::string reason = Reason(testing::ReadFile((folder / name).string()), values);
    const bool accept = one.at("expect").as_string() == "accept";
    EXPECT_EQ(reason, accept ? "none" : std::string(one.at("reason").as_string()));
  }
  EXPECT_GE(seen, 12);
}

TEST(JinjaTemplate, TrimsBlocksAndTheFinalNewline) {
  const json::object values = {
      {"messages",
       {{{"role", "user"}, {"content", "Q"}}, {{"role", "assistant"}, {"content", "A"}}}}};
  EXPECT_EQ(Text("{% for m in messages %}\n    {% if m.role == 'user' %}\n[{{ m.content }}]\n"
                 "    {% endif %}\n{% endfor %}\nEND\n",
                 values),
            "[Q]\nEND");
}

TEST(JinjaTemplate, KeepsRequestTextApart) {
  const json::object v = {{"c", " Ab<|x|>b "}, {"n", 7}, {"d", {{"k", "v"}}}, {"l", {"p", "q"}}};
  EXPECT_EQ(Marked("<s>{{ c }}</s>", v), "<s>[ Ab<|x|>b ]</s>");
  EXPECT_EQ(Marked("{{ '<' + c|trim + '>' }}", v), "<[Ab<|x|>b]>");
  EXPECT_EQ(Marked("{{ (c ~ '!')|upper }}", v), "[ AB<|X|>B ]!");
  EXPECT_EQ(Marked("{{ c.replace('b', '-') }}", v), "[ A]-[<|x|>]-[ ]");
  EXPECT_EQ(Marked("{{ 'a-b'.replace('-', c.strip()) }}", v), "a[Ab<|x|>b]b");
  EXPECT_EQ(Marked("{{ ('ab' ~ c ~ 'cd')[1:6] }}", v), "b[ Ab<]");
  EXPECT_EQ(Marked("{{ ('ab' ~ c.strip() ~ 'cd')[::-1] }}", v), "dc[b>|x|<bA]ba");
  EXPECT_EQ(Marked("{{ c.split('b')|join('+') }}", v), "[ A]+[<|x|>]+[ ]");
  EXPECT_EQ(Marked("{{ d|tojson }}", v), "[{\"k\": \"v\"}]");
  EXPECT_EQ(Marked("{{ {'a': c}|tojson }}", v), "{\"a\": [\" Ab<|x|>b \"]}");
  EXPECT_EQ(Marked("{{ d }}{{ l }}{{ n }}", v), "[{'k': 'v'}['p', 'q']7]");
  EXPECT_EQ(Marked("{{ '<' ~ (n + 1) ~ '>' }}", v), "<[8]>");
  EXPECT_EQ(Marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(c.strip())|lower }}", v),
            "<[ab<|x|>b]>");
  EXPECT_EQ(Marked("{% set x %}({{ n }}){% endset %}{{ x * 2 }}", v), "([7])([7])");
  EXPECT_EQ(Marked("{{ '%s|%s' % (n, 'a') }}{{ '{}'.format(c.strip()) }}", v), "[7]|a[Ab<|x|>b]");
  EXPECT_EQ(Marked("{% for k, x in d.items() %}{{ k }}={{ x }}{% endfor %}", v), "[k]=[v]");
  EXPECT_EQ(Marked("{% filter upper %}x{{ l[0] }}{% endfilter %}", v), "X[P]");
  EXPECT_EQ(Marked("{{ c.strip()|indent(1, true) }}", v), " [Ab<|x|>b]");
  EXPECT_EQ(Marked("{{ c|list|first ~ c|trim|truncate(4, true, '..', 0) }}", v), "[ Ab]..");
  EXPECT_EQ(Marked("{{ c.strip()|title }}{{ c|int('z') }}{{ '5'|int }}", v), "[Ab<|x|>b]z5");
}

// Each budget: a template at the limit passes, one past it is refused with the budget's name.
TEST(JinjaTemplate, BudgetsHold) {
  EXPECT_EQ(Reason("{% for i in range(1000) %}{% for j in range(100) %}{% endfor %}{% endfor %}"),
            "none");
  EXPECT_EQ(Reason("{% for i in range(1001) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"),
            "step_limit");
  EXPECT_EQ(Reason("{% for a in range(10000) %}{% for b in range(10000) %}{% for c in "
                   "range(10000) %}x{% endfor %}{% endfor %}{% endfor %}"),
            "step_limit");
  EXPECT_EQ(Reason("{{ 'a' * 8388608 }}"), "none");
  EXPECT_EQ(Reason("{{ 'a' * 8388609 }}"), "output_limit");
  EXPECT_EQ(Reason("{{ 'a' * 8388608 }}b"), "output_limit");
  EXPECT_EQ(Reason("{% set ns = namespace(s='ab') %}{% for i in range(30) %}{% set ns.s = ns.s + "
                   "ns.s %}{% endfor %}"),
            "output_limit");
  EXPECT_EQ(Reason("{{ 'x'|center(99999999) }}"), "output_limit");
  EXPECT_EQ(Reason("{{ '%999999999d' % 1 }}"), "output_limit");
  EXPECT_EQ(Reason("{{ ([0] * 2000000)|length }}"), "none");
  EXPECT_EQ(Reason("{{ [0] * 3000000 }}"), "memory_limit");
  EXPECT_EQ(Reason("{% set ns = namespace(l=[1]) %}{% for i in range(40) %}{% set ns.l = ns.l + "
                   "ns.l %}{% endfor %}"),
            "memory_limit");
  EXPECT_EQ(Reason("{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}"), "depth_limit");
  EXPECT_EQ(Reason("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}"),
            "none");
  EXPECT_EQ(Reason("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}"),
            "depth_limit");
  EXPECT_EQ(Reason("{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] "
                   "%}{% endfor %}{{ ns.l }}"),
            "nesting_limit");
  EXPECT_EQ(Reason("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"), "nesting_limit");
  EXPECT_EQ(Reason(std::string(limits::kTemplateSourceBytes, 'x')), "none");
  EXPECT_EQ(Reason(std::string(limits::kTemplateSourceBytes + 1, 'x')), "source_limit");
}

std::string Nested(std::string_view open, std::string_view inner, std::string_view close, int n) {
  std::string out = "{{ ";
  for (int i = 0; i < n; ++i) out += open;
  out += inner;
  for (int i = 0; i < n; ++i) out += close;
  return out + " }}";
}

// The stack the server's threads have at least; sanitizers need more for the same frames.
void OnSmallStack(const std::function<void()>& work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  constexpr size_t kStack = 4096u << 10;
#else
  constexpr size_t kStack = 512u << 10;
#endif
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  const auto enter = [](void* context) -> void* {
    (*static_cast<const std::function<void()>*>(context))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, enter, const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(JinjaTemplate, DeepestAllowedNestingFitsASmallStack) {
  OnSmallStack([] {
    EXPECT_EQ(Reason(Nested("(", "1", ")", 50)), "none");
    EXPECT_EQ(Reason(Nested("[", "1", "]", 60)), "none");
    for (const int depth : {66, 99, 190, 198, 199, 200, 201, 5000}) {
      for (const auto& [open, close] : {std::pair("(", ")"),
                                        {"[", "]"},
                                        {"not ", ""},
                                        {"-", ""},
                                        {"{1:", "}"},
                                        {"dict(a=", ")"},
                                        {"'a'.join(", ")"},
                                        {"1 if 1 else ", ""},
                                        {"x[", "]"},
                                        {"1 is eq ", ""}}) {
        const std::string reason = Reason(Nested(open, "1", close, depth), {{"x", {1, 1}}});
        if (depth > 200) {
          EXPECT_NE(reason, "none") << open << depth;
        }
      }
    }
    EXPECT_EQ(Reason(Nested("", "x", ".a", 5000)), "nesting_limit");
    EXPECT_EQ(Reason(Nested("", "x", "|upper", 5000)), "nesting_limit");
    EXPECT_EQ(Reason(Nested("", "1", "+1", 20000)), "none");
    std::string blocks;
    for (int i = 0; i < 197; ++i) blocks += "{% if 1 %}";
    for (int i = 0; i < 197; ++i) blocks += "{% endif %}";
    EXPECT_EQ(Reason(blocks), "none");
    EXPECT_EQ(Reason("{% if 1 %}" + blocks + "{% endif %}"), "nesting_limit");
  });
}

TEST(JinjaTemplate, DeepestCallsFitASmallStack) {
  OnSmallStack([] {
    // Every level nests filters, calls, macros, a caller and blocks before it recurses.
    EXPECT_EQ(
        Reason("{% macro w() %}{{ caller() }}{% endmacro %}{% macro m(n) %}{% if n %}{% for x "
               "in [1] %}{% call w() %}{{ [dict(a=((m(n - 1)|upper ~ '')|trim))]|tojson }}{% "
               "endcall %}{% endfor %}{% endif %}{% endmacro %}{{ m(100) }}"),
        "depth_limit");
    EXPECT_EQ(
        Reason("{% for x in [[[[1]]]] recursive %}{% if x is iterable %}{{ loop(x) }}{% endif "
               "%}{% endfor %}"),
        "none");
    const std::string pipes =
        "{% macro m(n) %}{{ [n]|map('string')|list }}{{ [m(n)|list] }}{% "
        "endmacro %}{{ m(1) }}";
    EXPECT_EQ(Reason(pipes), "depth_limit");
  });
}

TEST(JinjaTemplate, IntegersNeverWrap) {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775808 - 1 }}", "{{ 2 ** 63 }}",
        "{{ 9223372036854775807 * 2 }}", "{{ -(-9223372036854775808) }}", "{{ 10 ** 400 }}",
        "{{ -9223372036854775808 // -1 }}", "{{ 9223372036854775808 }}",
        "{{ 10 ** 18 | int * 10 }}", "{{ (-9223372036854775808)|abs }}",
        "{{ '9223372036854775808'|int }}", "{{ 1e300|int }}"}) {
    EXPECT_EQ(Reason(source), "bad_argument") << source;
  }
  EXPECT_EQ(Text("{{ -9223372036854775808 % -1 }} {{ 2 ** 62 }}"), "0 4611686018427387904");
  EXPECT_EQ(
      Text("{{ range(-9000000000000000000, 9000000000000000000, 9000000000000000000)|list }}"),
      "[-9000000000000000000, 0]");
  EXPECT_EQ(Text("{{ 'abc'[::-9223372036854775808] }}{{ [1][9223372036854775807:] }}"), "c[]");
}

TEST(JinjaTemplate, RefusalsNameTheReason) {
  EXPECT_EQ(Reason("{{ raise_exception('no') }}"), "template_error");
  EXPECT_EQ(Reason("{{ x.y }}"), "undefined_value");
  EXPECT_EQ(Reason("{% set l = [] %}{{ l.append(1) }}"), "forbidden_attribute");
  EXPECT_EQ(Reason("{{ ''.__class__.mro() }}"), "forbidden_attribute");
  EXPECT_EQ(Reason("{{ 1|nope }}"), "unknown_filter");
  EXPECT_EQ(Reason("{{ 1 is nope }}"), "unknown_test");
  for (const char* tag :
       {"include 'x'", "extends 'x'", "import 'x' as y", "from 'x' import y", "block x"}) {
    EXPECT_EQ(Reason("{% " + std::string(tag) + " %}"), "unsupported_statement") << tag;
  }
  const auto error = RenderWith("a\nb\n{{ 1 / 0 }}", {});
  ASSERT_FALSE(error.has_value());
  EXPECT_THAT(error.error().message, ::testing::HasSubstr("line 3"));
}

TEST(JinjaTemplate, HostileSearchesAreBounded) {
  json::object values = {{"a", std::string(1 << 20, 'a')}, {"w", std::string(1 << 19, 'a') + "b"}};
  EXPECT_EQ(Text("{{ a.find(w) }}{{ w in a }}{{ a.count(w) }}", values), "-1False0");
  EXPECT_EQ(Reason("{{ a.rfind(w) }}", values), "step_limit");
  EXPECT_EQ(Reason("{{ a.rsplit(w) }}", values), "step_limit");
  EXPECT_EQ(Text("{{ a.replace('a', 'bc')|length }}", values).size(), 7u);
}

TEST(JinjaTemplate, LongConcatenationsAreCheap) {
  const std::string chunk(1000, 'x');
  EXPECT_EQ(Text("{% set ns = namespace(s='') %}{% for i in range(5000) %}{% set ns.s = ns.s + c "
                 "%}{% endfor %}{{ ns.s|length }}",
                 {{"c", chunk}}),
            "5000000");
}

}  // namespace
}  // namespace vivace::jinja
