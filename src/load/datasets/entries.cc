#include "load/datasets/entries.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/trim.h"

namespace vivace::load {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Walks over JSON text without judging it: where an element ends, and how many lines it took.
class Scanner {
 public:
  Scanner(std::string_view text, size_t pos, size_t line) : text_(text), pos_(pos), line_(line) {}

  size_t pos() const { return pos_; }
  size_t line() const { return line_; }
  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek() const { return text_[pos_]; }
  void Step() {
    if (text_[pos_] == '\n') ++line_;
    ++pos_;
  }
  void SkipSpace() {
    while (!AtEnd() && kSpace.find(Peek()) != kSpace.npos) Step();
  }

  // To the comma or bracket behind the element that begins here. False: the text ends first.
  bool SkipElement() {
    int64_t depth = 0;
    bool quoted = false;
    for (; !AtEnd(); Step()) {
      const char c = Peek();
      if (quoted) {
        if (c == '\\') {
          Step();
          if (AtEnd()) return false;
        } else if (c == '"') {
          quoted = false;
        }
      } else if (c == '"') {
        quoted = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == ']')) {
        return true;
      } else if (c == '}' || c == ']') {
        --depth;
      }
    }
    return false;
  }

 private:
  std::string_view text_;
  size_t pos_, line_;
};

}  // namespace

std::string_view EntryFile::text() const {
  return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
}

Result<EntryFile> EntryFile::Open(const std::string& path, size_t most) {
  VIVACE_ASSIGN(MappedFile mapped, MappedFile::Open(path));
  if (mapped.bytes().size() > limits::kMaxDatasetBytes) {
    return Fail(ErrorCode::kInvalidArgument, "dataset_too_large", "dataset-path",
                "{} has {} bytes; a dataset may have {}", path, mapped.bytes().size(),
                limits::kMaxDatasetBytes);
  }
  EntryFile file(std::move(mapped));
  const std::string_view text = file.text();
  const size_t begin = text.find_first_not_of(kSpace);
  VIVACE_RETURN_IF_ERROR(begin != text.npos && text[begin] == '[' ? file.FindElements(begin, most)
                                                                  : file.FindLines(most));
  if (file.entries_.empty()) {
    return Fail(ErrorCode::kCorruptData, "bad_dataset", "dataset-path", "{} has no entries", path);
  }
  return file;
}

Status EntryFile::FindLines(size_t most) {
  const std::string_view all = text();
  size_t line = 1;
  for (size_t pos = 0; pos < all.size() && entries_.size() < most; ++line) {
    const size_t end = std::min(all.find('\n', pos), all.size());
    const Entry entry{Trimmed(all.substr(pos, end - pos)), line};
    if (entry.text.size() > limits::kMaxDatasetLineBytes) {
      return Broken(entry, "longer than {} bytes", limits::kMaxDatasetLineBytes);
    }
    if (!entry.text.empty()) entries_.push_back(entry);
    pos = end + 1;
  }
  return {};
}

Status EntryFile::FindElements(size_t begin, size_t most) {
  const std::string_view all = text();
  const auto lines_before = std::count(all.begin(), all.begin() + begin, '\n');
  Scanner scanner(all, begin + 1, static_cast<size_t>(lines_before) + 1);
  while (entries_.size() < most) {
    scanner.SkipSpace();
    if (!scanner.AtEnd() && scanner.Peek() == ']' && entries_.empty()) return {};
    Entry entry{{}, scanner.line()};
    const size_t start = scanner.pos();
    if (!scanner.SkipElement()) return Broken(entry, "the array ends inside this entry");
    entry.text = Trimmed(all.substr(start, scanner.pos() - start));
    if (entry.text.size() > limits::kMaxDatasetLineBytes) {
      return Broken(entry, "longer than {} bytes", limits::kMaxDatasetLineBytes);
    }
    entries_.push_back(entry);
    if (scanner.Peek() == ']') return {};
    scanner.Step();
  }
  return {};
}

Result<boost::json::object> EntryFile::Parse(const Entry& entry) const {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse({entry.text.data(), entry.text.size()}, error);
  if (error) return Broken(entry, "not JSON: {}", error.message());
  if (!value.is_object()) return Broken(entry, "not a JSON object");
  return std::move(value.get_object());
}

Result<std::optional<double>> EntryFile::Number(const Entry& entry,
                                                const boost::json::object& object,
                                                std::string_view name, double least,
                                                double most) const {
  const boost::json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_number()) return Broken(entry, "\"{}\" is not a number", name);
  const double number = value->to_number<double>();
  if (!(number >= least && number <= most)) {
    return Broken(entry, "\"{}\" is {}; it may be {} to {}", name, number, least, most);
  }
  return number;
}

Result<std::optional<int64_t>> EntryFile::Count(const Entry& entry,
                                                const boost::json::object& object,
                                                std::string_view name, int64_t least,
                                                int64_t most) const {
  VIVACE_ASSIGN(const std::optional<double> number,
                Number(entry, object, name, static_cast<double>(least), static_cast<double>(most)));
  if (!number) return std::nullopt;
  if (*number != std::floor(*number)) {
    return Broken(entry, "\"{}\" is {}; give a whole number", name, *number);
  }
  return static_cast<int64_t>(*number);
}

}  // namespace vivace::load
