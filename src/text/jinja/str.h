// Template strings that remember where their bytes come from. Each byte is trusted (written in the
// template, or a number the engine made) or not (taken from a request); concatenation, slicing and
// every filter keep the two apart, so message text can never pass for a control token.
// A Str is flat (bytes and runs) or a pending concatenation of two; `Flat` settles the latter once.
// Owned by an Arena, or by the template's constants, which are always flat and so never written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/arena.h"

namespace vivace::jinja {

// The bytes up to `end` (from the end of the run before) share one origin.
struct Run {
  uint32_t end;
  bool trusted;
};

struct Str {
  const char* data = nullptr;
  size_t size = 0;
  bool ascii = true;          // then code points are bytes
  bool trusted = true;        // of all bytes, when `runs` is empty
  bool markup = false;        // markupsafe's Markup: what joins it with + or % is escaped
  std::span<const Run> runs;  // empty: one origin
  const Str* left = nullptr;  // pending concatenation when set
  const Str* right = nullptr;

  std::string_view view() const { return {data, size}; }
};

bool IsAscii(std::string_view text);
size_t CountCodePoints(std::string_view text);
// Byte offset of code point `index`; `text.size()` when there are fewer.
size_t CodePointOffset(std::string_view text, size_t index);
// Decodes the code point at `at` and moves past it; a bad byte is taken alone, as U+FFFD.
char32_t NextCodePoint(std::string_view text, size_t& at);
void AppendUtf8(char32_t code, std::string& out);

const Str* MakeStr(Arena& arena, std::string_view stable, bool trusted);  // no copy
const Str* CopyStr(Arena& arena, std::string_view text, bool trusted);
const Str* Concat(Arena& arena, const Str* left, const Str* right);
// Settles a pending concatenation in place. Iterative: chains may be a million long.
const Str* Flat(Arena& arena, const Str* text);
// Bytes [begin, end) of a flat string; shares its bytes, and is markup if it is.
const Str* Slice(Arena& arena, const Str* flat, size_t begin, size_t end);

// Calls visit(std::string_view, bool trusted) for each run of a flat string within [begin, end).
template <typename Visit>
void ForEachRun(const Str* flat, size_t begin, size_t end, Visit&& visit) {
  if (flat->runs.empty()) {
    if (begin < end) visit(flat->view().substr(begin, end - begin), flat->trusted);
    return;
  }
  size_t start = 0;
  for (const Run& run : flat->runs) {
    const size_t from = std::max<size_t>(start, begin), to = std::min<size_t>(run.end, end);
    if (from < to) visit(flat->view().substr(from, to - from), run.trusted);
    start = run.end;
  }
}

// Gathers pieces into one flat Str; refuses to grow past the output budget. Grows on the heap, so
// that the arena gets only the finished bytes.
class StrBuilder {
 public:
  explicit StrBuilder(Arena& arena) : arena_(arena) {}
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }
  void Append(std::string_view text, bool trusted);
  void Append(char c, bool trusted) { Append(std::string_view(&c, 1), trusted); }
  void AppendStr(const Str* text);  // flat or not
  void AppendSlice(const Str* flat, size_t begin, size_t end);
  size_t size() const { return bytes_.size(); }
  std::string& bytes() { return bytes_; }
  const std::vector<Run>& runs() const { return runs_; }
  const Str* Finish();

 private:
  Arena& arena_;
  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace vivace::jinja
