#include "text/jinja/str.h"

#include <algorithm>
#include <cstring>

#include "base/limits.h"

namespace vivace::jinja {
namespace {

std::span<const Run> CopyRuns(Arena& arena, const std::vector<Run>& runs) {
  auto* copy = static_cast<Run*>(arena.allocate(runs.size() * sizeof(Run), alignof(Run)));
  std::copy(runs.begin(), runs.end(), copy);
  return {copy, runs.size()};
}

}  // namespace

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

size_t CountCodePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

size_t CodePointOffset(std::string_view text, size_t index) {
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) continue;
    if (index-- == 0) return at;
  }
  return text.size();
}

char32_t NextCodePoint(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length <= 1 || at + length > text.size()) {
    ++at;
    return length == 1 ? lead : 0xFFFD;
  }
  char32_t code = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return ++at, 0xFFFD;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  at += length;
  return code;
}

void AppendUtf8(char32_t code, std::string& out) {
  const auto put = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
  if (code < 0x80) {
    put(code);
    return;
  }
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

const Str* MakeStr(Arena& arena, std::string_view stable, bool trusted) {
  Str* str = arena.New<Str>();
  str->data = stable.data();
  str->size = stable.size();
  str->ascii = IsAscii(stable);
  str->trusted = trusted;
  return str;
}

const Str* CopyStr(Arena& arena, std::string_view text, bool trusted) {
  char* bytes = arena.Bytes(text.size());
  std::memcpy(bytes, text.data(), text.size());
  return MakeStr(arena, {bytes, text.size()}, trusted);
}

const Str* Concat(Arena& arena, const Str* left, const Str* right) {
  if (left->size == 0) return right;
  if (right->size == 0) return left;
  if (left->size + right->size > limits::kTemplateOutputBytes) {
    Raise(kOutputLimit, "a string would be longer than {} bytes", limits::kTemplateOutputBytes);
  }
  Str* str = arena.New<Str>();
  str->size = left->size + right->size;
  str->ascii = left->ascii && right->ascii;
  str->left = left;
  str->right = right;
  return str;
}

const Str* Flat(Arena& arena, const Str* text) {
  if (text->left == nullptr) return text;
  StrBuilder builder(arena);
  builder.Reserve(text->size);
  builder.AppendStr(text);
  // Only strings of the running render are ever pending, so nobody else reads this one.
  Str* settled = const_cast<Str*>(text);
  const bool markup = text->markup;
  *settled = *builder.Finish();
  settled->markup = markup;
  return settled;
}

const Str* Slice(Arena& arena, const Str* flat, size_t begin, size_t end) {
  if (begin == 0 && end >= flat->size) return flat;
  Str* str = arena.New<Str>();
  str->data = flat->data + begin;
  str->size = end > begin ? end - begin : 0;
  str->ascii = flat->ascii || IsAscii(str->view());
  str->trusted = flat->trusted;
  str->markup = flat->markup;
  if (flat->runs.empty()) return str;
  std::vector<Run> runs;
  uint32_t at = 0;
  ForEachRun(flat, begin, end, [&](std::string_view piece, bool trusted) {
    at += static_cast<uint32_t>(piece.size());
    runs.push_back({at, trusted});
  });
  if (!runs.empty()) str->trusted = runs.front().trusted;
  if (runs.size() > 1) str->runs = CopyRuns(arena, runs);
  return str;
}

void StrBuilder::Append(std::string_view text, bool trusted) {
  if (text.empty()) return;
  if (text.size() > limits::kTemplateOutputBytes - bytes_.size()) {
    Raise(kOutputLimit, "a string would be longer than {} bytes", limits::kTemplateOutputBytes);
  }
  bytes_.append(text);
  const auto end = static_cast<uint32_t>(bytes_.size());
  if (!runs_.empty() && runs_.back().trusted == trusted) {
    runs_.back().end = end;
  } else {
    runs_.push_back({end, trusted});
  }
}

void StrBuilder::AppendStr(const Str* text) {
  std::vector<const Str*> pending{text};
  while (!pending.empty()) {
    const Str* str = pending.back();
    pending.pop_back();
    if (str->left != nullptr) {
      pending.push_back(str->right);
      pending.push_back(str->left);
    } else {
      AppendSlice(str, 0, str->size);
    }
  }
}

void StrBuilder::AppendSlice(const Str* flat, size_t begin, size_t end) {
  ForEachRun(flat, begin, end,
             [&](std::string_view piece, bool trusted) { Append(piece, trusted); });
}

const Str* StrBuilder::Finish() {
  const bool trusted = runs_.empty() || runs_.front().trusted;
  Str* str = const_cast<Str*>(CopyStr(arena_, bytes_, trusted));  // just made, nobody else's yet
  if (runs_.size() > 1) str->runs = CopyRuns(arena_, runs_);
  return str;
}

}  // namespace vivace::jinja
