#include "text/load_tokenizer.h"

#include <filesystem>

#include "base/limits.h"
#include "base/mapped_file.h"
#include "formats/file_kind.h"
#include "formats/gguf.h"
#include "formats/json_file.h"
#include "text/sentence_piece.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"

namespace vivace {
namespace {

Result<TokenizerData> ReadGguf(const std::string& path) {
  VIVACE_ASSIGN(const auto file, formats::GgufFile::Open(path));
  return TokenizerFromGguf(file);
}

Result<TokenizerData> ReadData(const std::string& path) {
  VIVACE_ASSIGN(const auto kind, formats::DetectFileKind(path));
  if (kind == formats::FileKind::kSafetensors) {
    return Fail(ErrorCode::kUnsupported, "no_tokenizer", "",
                "a safetensors file has no tokenizer; give the tokenizer.json beside it");
  }
  if (kind == formats::FileKind::kGguf) return ReadGguf(path);
  VIVACE_ASSIGN(const auto file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  return path.ends_with(".model") ? sentence_piece::ReadModel(text) : TokenizerFromJson(text);
}

struct Companion {
  const char* name;
  size_t max_bytes;
  Status (*apply)(const boost::json::object& root, TokenizerData* data);
};
constexpr Companion kCompanions[] = {
    {"tokenizer_config.json", limits::kMaxTokenizerJsonBytes, ApplyTokenizerConfig},
    {"generation_config.json", limits::kMaxConfigBytes, ApplyGenerationConfig}};

Status ApplyCompanion(const Companion& companion, const std::string& path, TokenizerData* data) {
  VIVACE_ASSIGN(const auto root, formats::ReadJsonObject(path, companion.max_bytes));
  return companion.apply(root, data);
}

// The message begins with the file's path.
tl::unexpected<Error> Of(const std::string& path, Error error) {
  if (!error.message.starts_with(path)) error.message = fmt::format("{}: {}", path, error.message);
  return tl::unexpected(std::move(error));
}

Result<std::shared_ptr<const Tokenizer>> Load(const std::string& path,
                                              const std::filesystem::path& folder) {
  auto data = ReadData(path);
  if (!data) return Of(path, std::move(data.error()));
  for (const Companion& companion : kCompanions) {
    std::error_code ignored;
    if (folder.empty() || !std::filesystem::exists(folder / companion.name, ignored)) continue;
    const std::string beside = (folder / companion.name).string();
    auto applied = ApplyCompanion(companion, beside, &*data);
    if (!applied) return Of(beside, std::move(applied.error()));
  }
  auto tokenizer = Tokenizer::Create(std::move(*data));
  if (!tokenizer) return Of(path, std::move(tokenizer.error()));
  return tokenizer;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path folder = is_folder ? fs::path(path) : fs::path();
  std::string file = path;
  if (is_folder) {
    file = (folder / "tokenizer.json").string();
    const fs::path model = folder / "tokenizer.model";
    if (!fs::exists(file, ignored) && fs::exists(model, ignored)) file = model.string();
  }
  return Load(file, folder);
}

}  // namespace vivace
