#include "text/load_tokenizer.h"

#include <filesystem>

#include "base/mapped_file.h"
#include "formats/file_kind.h"
#include "formats/gguf.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"

namespace vivace {
namespace {

Result<TokenizerData> ReadGguf(const std::string& path) {
  VIVACE_ASSIGN(const auto file, formats::GgufFile::Open(path));
  return TokenizerFromGguf(file);
}

Result<TokenizerData> ReadJson(const std::string& path) {
  VIVACE_ASSIGN(const auto file, MappedFile::Open(path));
  const auto bytes = file.bytes();
  return TokenizerFromJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<std::shared_ptr<const Tokenizer>> Load(const std::string& path) {
  VIVACE_ASSIGN(const auto kind, formats::DetectFileKind(path));
  if (kind == formats::FileKind::kSafetensors) {
    return Fail(ErrorCode::kUnsupported, "no_tokenizer", "",
                "a safetensors file has no tokenizer; give the tokenizer.json beside it");
  }
  VIVACE_ASSIGN(auto data, kind == formats::FileKind::kGguf ? ReadGguf(path) : ReadJson(path));
  return Tokenizer::Create(std::move(data));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path) {
  std::error_code ignored;
  const std::string file = std::filesystem::is_directory(path, ignored)
                               ? (std::filesystem::path(path) / "tokenizer.json").string()
                               : path;
  auto tokenizer = Load(file);
  if (!tokenizer && !tokenizer.error().message.starts_with(file)) {
    tokenizer.error().message = fmt::format("{}: {}", file, tokenizer.error().message);
  }
  return tokenizer;
}

}  // namespace vivace
