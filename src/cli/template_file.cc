#include "cli/template_file.h"

#include <fstream>
#include <utility>

#include "base/limits.h"

namespace vivace::cli {

Result<ChatTemplate> LoadTemplate(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string source(limits::kTemplateSourceBytes + 1, '\0');  // one more: Parse refuses it
  file.read(source.data(), static_cast<std::streamsize>(source.size()));
  if (!file.is_open() || file.bad()) {
    return Fail(ErrorCode::kIo, "open_failed", "chat-template", "{}: cannot be read", path);
  }
  source.resize(static_cast<size_t>(file.gcount()));
  auto parsed = ChatTemplate::Parse(std::move(source));
  if (!parsed) parsed.error().message = fmt::format("{}: {}", path, parsed.error().message);
  return parsed;
}

}  // namespace vivace::cli
