// The formats that models write tool calls and thoughts in, as data. Who adds a model family's
// format adds a row; only a new shape of call needs code (call_reader.h).
//
// Sources: the chat templates and model cards of the families named in formats.cc, and the
// structural tags that xgrammar 0.2.9 has for them (python/xgrammar/builtin_structural_tag.py).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace vivace::dialect {

// How a call is written between its marks. Where one begins with `{` or `[`, it is read as kJson
// whatever its row says: models fall back to that.
enum class CallShape : uint8_t {
  kNone,     // no calls are looked for
  kJson,     // {"name": …, "arguments": {…}}, or a list of such; also "parameters", "tool_name"
  kNamed,    // a header that holds the name, then the arguments as a JSON object
  kXml,      // the name, then keys and values between marks of their own
  kPython,   // name(key=value, …), one or several, maybe in a list, without marks always in one;
             // read as a whole
  kGemma,    // call:name{key:value}, strings between marks of their own; read as a whole
  kHarmony,  // a message with a recipient; the whole output is messages (harmony_parser.cc)
};

// Where the name stands in the header of a kNamed call: behind the last `after` (if there is one),
// up to the first of `before`; white space around it does not count.
struct NameRule {
  std::string_view after = {};
  std::array<std::string_view, 2> before = {};
};

// The marks inside a kXml call. A value is all between `value_begin` and `value_end`, less one
// line break at each end where it does not keep them.
struct XmlMarks {
  std::string_view name_begin = {}, name_end = {};
  std::string_view key_begin = {}, key_end = {};
  std::string_view value_begin = {};  // empty: right behind key_end
  std::string_view value_end = {};
  std::string_view call_end = {};  // empty: the call's own end mark follows
  // How a key ends, before key_end, where it says itself what its value is: text, or JSON. Empty:
  // the tool's schema says it.
  std::string_view says_text = {}, says_json = {};
  bool keeps_breaks = false;  // line breaks at a value's ends are its own
};

// How a call is written when a grammar forces one; `@` stands for the name.
struct CallSpelling {
  std::string_view section_begin = {};
  std::string_view call_begin = {};
  std::string_view call_end = {};
  std::string_view separator = {};
  std::string_view section_end = {};
  std::string_view style = "json";  // xgrammar's name of the arguments' style
};

struct ToolFormat {
  std::string_view name = {};
  // The template is in this format if it has all of these.
  std::array<std::string_view, 2> template_marks = {};
  CallShape shape = CallShape::kNone;
  // Marks, empty where there is none. A section holds all calls of a turn. Without any mark a call
  // is known by its beginning alone, and only where the content or another call begins or ended.
  std::string_view section_begin = {}, section_end = {};
  std::string_view call_begin = {}, call_end = {};
  std::string_view other_begin = {};  // another opening of a call that models write
  NameRule name_rule = {};
  XmlMarks xml = {};
  CallSpelling spelling = {};
  bool short_ids = false;  // its template takes ids of nine letters and digits only

  bool marked() const { return !section_begin.empty() || !call_begin.empty(); }
};

struct ReasoningFormat {
  std::string_view name;
  std::string_view begin, end;
  bool known_by_end = false;  // templates that only take thoughts away mention just their end
};

// In the order they are looked for; the last two are the generic format and none.
std::span<const ToolFormat> ToolFormats();
const ToolFormat& GenericFormat();
const ToolFormat& NoToolFormat();

std::span<const ReasoningFormat> ReasoningFormats();

// A mark without the line break that models write behind it.
constexpr std::string_view TrimmedMark(std::string_view mark) {
  if (mark.ends_with('\n')) mark.remove_suffix(1);
  return mark;
}

}  // namespace vivace::dialect
