#include "formats/file_kind.h"

#include <algorithm>
#include <string_view>

#include "base/mapped_file.h"
#include "formats/byte_cursor.h"

namespace vivace::formats {
namespace {

struct Suffix {
  std::string_view text;
  FileKind kind;
};
constexpr Suffix kSuffixes[] = {
    {".gguf", FileKind::kGguf},
    {".safetensors", FileKind::kSafetensors},
    {".json", FileKind::kTokenizerJson},
    {".jinja", FileKind::kChatTemplate},
};

FileKind KindBySuffix(std::string_view path) {
  const auto* found = std::ranges::find_if(
      kSuffixes, [&](const Suffix& suffix) { return path.ends_with(suffix.text); });
  return found == std::end(kSuffixes) ? FileKind::kUnknown : found->kind;
}

FileKind KindByContents(std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes);
  const auto head = cursor.Take(4);
  if (!head) return FileKind::kUnknown;
  const std::string_view magic(reinterpret_cast<const char*>(head->data()), head->size());
  if (magic == "GGUF") return FileKind::kGguf;
  // safetensors: a header length that fits the file, then '{'.
  ByteCursor again(bytes);
  const auto length = again.Read<uint64_t>();
  const auto brace = again.Read<char>();
  if (length && brace && *brace == '{' && *length <= bytes.size() - 8) {
    return FileKind::kSafetensors;
  }
  return FileKind::kUnknown;
}

}  // namespace

Result<FileKind> DetectFileKind(const std::string& path) {
  VIVACE_ASSIGN(const MappedFile file, MappedFile::Open(path));
  const FileKind kind = KindByContents(file.bytes());
  return kind == FileKind::kUnknown ? KindBySuffix(path) : kind;
}

}  // namespace vivace::formats
