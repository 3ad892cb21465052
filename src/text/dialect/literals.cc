#include "text/dialect/literals.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/dialect/json_scanner.h"
#include "text/dialect/json_text.h"

namespace vivace::dialect {
namespace {

namespace json = boost::json;

bool IsWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool IsNumber(std::string_view text) {
  JsonScanner scanner;
  if (text.empty() || (text[0] != '-' && std::isdigit(static_cast<unsigned char>(text[0])) == 0)) {
    return false;
  }
  for (const char c : text) {
    if (scanner.Take(c) != JsonScanner::Step::kMore) return false;
  }
  return scanner.Take(' ') == JsonScanner::Step::kEnded;
}

// Walks over a text and writes JSON.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, bool bare_words) : text_(text), bare_words_(bare_words) {}

  void SkipSpace() {
    while (at_ < text_.size() && IsJsonSpace(text_[at_])) ++at_;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  bool Eat(std::string_view mark) {
    SkipSpace();
    if (text_.substr(at_, mark.size()) != mark) return false;
    at_ += mark.size();
    return true;
  }
  // Letters, digits, `_`, `.` and `-`; maybe none.
  std::string_view Word() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && IsWordByte(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  size_t position() const { return at_; }
  void Return(size_t position) { at_ = position; }

  // One value; false if there is none.
  bool Value(int depth, std::string* out) {
    SkipSpace();
    if (at_ == text_.size() || depth > limits::kMaxArgumentDepth) return false;
    const char c = text_[at_];
    if (c == '{') return Object(depth, out);
    if (c == '[') return List(']', depth, out);
    if (c == '(') return List(')', depth, out);
    if (IsStringNext()) return String(out);
    return Word(out);
  }

  // key:value,… up to `}`, behind which the reader stands then.
  bool Object(int depth, std::string* out) {
    if (!Eat("{")) return false;
    *out += '{';
    for (bool first = true; !Eat("}"); first = false) {
      if (!first && !Eat(",")) return false;
      if (!first && Eat("}")) break;  // Python lets a comma stand last
      if (!first) *out += ", ";
      if (!Key(out) || !Eat(":")) return false;
      *out += ": ";
      if (!Value(depth + 1, out)) return false;
    }
    *out += '}';
    return true;
  }

 private:
  static constexpr std::array<std::string_view, 2> kMarks = {"<|\"|>", "<escape>"};

  bool IsStringNext() const {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with('"') || rest.starts_with('\'') || rest.starts_with(kMarks[0]) ||
           rest.starts_with(kMarks[1]);
  }

  bool Key(std::string* out) {
    SkipSpace();
    if (IsStringNext()) return String(out);
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ':' && text_[at_] != '}' && text_[at_] != ',') ++at_;
    const std::string_view key = TrimSpace(text_.substr(begin, at_ - begin));
    if (key.empty() || !bare_words_) return false;
    AppendQuoted(key, out);
    return true;
  }

  bool List(char end, int depth, std::string* out) {
    ++at_;
    *out += '[';
    const std::string_view close(&end, 1);
    for (bool first = true; !Eat(close); first = false) {
      if (!first && !Eat(",")) return false;
      if (!first && Eat(close)) break;
      if (!first) *out += ", ";
      if (!Value(depth + 1, out)) return false;
    }
    *out += ']';
    return true;
  }

  bool String(std::string* out) {
    for (const std::string_view mark : kMarks) {
      if (text_.substr(at_, mark.size()) != mark) continue;
      const size_t begin = at_ + mark.size();
      const size_t end = text_.find(mark, begin);
      if (end == std::string_view::npos) return false;
      AppendQuoted(text_.substr(begin, end - begin), out);
      at_ = end + mark.size();
      return true;
    }
    return Quoted(out);
  }

  // As Python reads it; escapes it does not know stay as they are.
  bool Quoted(std::string* out) {
    const char quote = text_[at_];
    const std::string_view triple = text_.substr(at_, 3);
    const bool three = triple.size() == 3 && triple[1] == quote && triple[2] == quote;
    const std::string_view end = three ? triple : text_.substr(at_, 1);
    at_ += end.size();
    std::string value;
    while (true) {
      if (at_ >= text_.size()) return false;
      if (text_.substr(at_, end.size()) == end) break;
      if (text_[at_] == '\\') {
        if (!Escape(&value)) return false;
      } else {
        value += text_[at_++];
      }
    }
    at_ += end.size();
    AppendQuoted(value, out);
    return true;
  }

  bool Escape(std::string* value) {
    if (at_ + 1 >= text_.size()) return false;
    const char c = text_[at_ + 1];
    at_ += 2;
    constexpr std::string_view kNames = "nrt\\'\"/bf";
    constexpr std::string_view kMeanings = "\n\r\t\\'\"/\b\f";
    if (const size_t found = kNames.find(c); found != std::string_view::npos) {
      *value += kMeanings[found];
      return true;
    }
    if (c != 'u' && c != 'x') {
      *value += '\\';
      *value += c;
      return true;
    }
    uint32_t code = 0;
    if (!Hex(c == 'u' ? 4 : 2, &code)) return false;
    const bool high = code >= 0xD800 && code < 0xDC00;
    if (high && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      uint32_t low = 0;
      if (!Hex(4, &low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000) return false;
    utf8::Append(code, value);
    return true;
  }

  bool Hex(size_t digits, uint32_t* code) {
    const std::string_view text = text_.substr(at_, digits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *code, 16);
    if (text.size() != digits || error != std::errc() || end != text.data() + digits) return false;
    at_ += digits;
    return true;
  }

  // A number or a constant; in Gemma's notation any other text up to a comma or bracket.
  bool Word(std::string* out) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}' && text_[at_] != ']' &&
           text_[at_] != ')') {
      ++at_;
    }
    const std::string_view word = TrimSpace(text_.substr(begin, at_ - begin));
    if (word == "True" || word == "true") {
      *out += "true";
    } else if (word == "False" || word == "false") {
      *out += "false";
    } else if (word == "None" || word == "null") {
      *out += "null";
    } else if (IsNumber(word)) {
      *out += word;
    } else if (bare_words_ && !word.empty()) {
      AppendQuoted(word, out);
    } else {
      return false;
    }
    return true;
  }

  std::string_view text_;
  bool bare_words_;
  size_t at_ = 0;
};

// The tool's property at a place.
std::optional<std::string_view> PropertyAt(const Tool* tool, size_t index) {
  const json::object* schema = tool == nullptr ? nullptr : tool->parameters.if_object();
  const json::value* properties = schema == nullptr ? nullptr : schema->if_contains("properties");
  const json::object* members = properties == nullptr ? nullptr : properties->if_object();
  if (members == nullptr || index >= members->size()) return std::nullopt;
  return std::string_view((members->begin() + static_cast<ptrdiff_t>(index))->key());
}

// The inside of `name(…)`, the bracket eaten.
bool PythonArguments(LiteralReader* reader, const Tool* tool, std::string* out) {
  *out += '{';
  for (size_t index = 0; !reader->Eat(")"); ++index) {
    if (index > 0 && !reader->Eat(",")) return false;
    if (index > 0 && reader->Eat(")")) break;
    if (index > 0) *out += ", ";
    const size_t begin = reader->position();
    const std::string_view key = reader->Word();
    if (!key.empty() && reader->Eat("=")) {
      AppendQuoted(key, out);
    } else {
      reader->Return(begin);
      const auto property = PropertyAt(tool, index);
      if (!property) return false;
      AppendQuoted(*property, out);
    }
    *out += ": ";
    if (!reader->Value(0, out)) return false;
  }
  *out += '}';
  return true;
}

}  // namespace

std::optional<std::vector<WholeCall>> PythonCalls(std::string_view text, const ToolSet& tools) {
  LiteralReader reader(text, /*bare_words=*/false);
  std::vector<WholeCall> calls;
  const bool list = reader.Eat("[");
  while (!reader.AtEnd() && !(list && reader.Eat("]"))) {
    if (list && !calls.empty() && !reader.Eat(",")) return std::nullopt;
    const bool printed = reader.Eat("print(");
    WholeCall call;
    call.name = std::string(reader.Word());
    if (!IsCallName(call.name) || !reader.Eat("(")) return std::nullopt;
    if (!PythonArguments(&reader, tools.Find(call.name), &call.arguments)) return std::nullopt;
    if (printed && !reader.Eat(")")) return std::nullopt;
    calls.push_back(std::move(call));
  }
  if (calls.empty() || !reader.AtEnd()) return std::nullopt;
  return calls;
}

std::optional<std::vector<WholeCall>> GemmaCalls(std::string_view text) {
  LiteralReader reader(text, /*bare_words=*/true);
  std::vector<WholeCall> calls;
  while (!reader.AtEnd()) {
    WholeCall call;
    if (!reader.Eat("call:")) return std::nullopt;
    call.name = std::string(reader.Word());
    if (!IsCallName(call.name) || !reader.Object(0, &call.arguments)) return std::nullopt;
    calls.push_back(std::move(call));
    reader.Eat(",");
  }
  if (calls.empty()) return std::nullopt;
  return calls;
}

}  // namespace vivace::dialect
