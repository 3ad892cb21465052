#include "text/load_tokenizer.h"

#include <filesystem>

#include "base/mapped_file.h"
#include "formats/file_kind.h"
#include "formats/gguf.h"
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

Result<std::string> ReadText(const std::string& path) {
  VIVACE_ASSIGN(const auto file, MappedFile::Open(path));
  const auto bytes = file.bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<TokenizerData> ReadData(const std::string& path) {
  VIVACE_ASSIGN(const auto kind, formats::DetectFileKind(path));
  if (kind == formats::FileKind::kSafetensors) {
    return Fail(ErrorCode::kUnsupported, "no_tokenizer", "",
                "a safetensors file has no tokenizer; give the tokenizer.json beside it");
  }
  if (kind == formats::FileKind::kGguf) return ReadGguf(path);
  VIVACE_ASSIGN(const std::string text, ReadText(path));
  return path.ends_with(".model") ? sentence_piece::ReadModel(text) : TokenizerFromJson(text);
}

struct Companion {
  const char* name;
  Status (*apply)(std::string_view text, TokenizerData* data);
};
constexpr Companion kCompanions[] = {{"tokenizer_config.json", ApplyTokenizerConfig},
                                     {"generation_config.json", ApplyGenerationConfig}};

Result<std::shared_ptr<const Tokenizer>> Load(const std::string& path,
                                              const std::filesystem::path& folder) {
  VIVACE_ASSIGN(auto data, ReadData(path));
  for (const auto& [name, apply] : kCompanions) {
    std::error_code ignored;
    if (folder.empty() || !std::filesystem::exists(folder / name, ignored)) continue;
    VIVACE_ASSIGN(const std::string text, ReadText((folder / name).string()));
    if (auto applied = apply(text, &data); !applied) {
      applied.error().message = fmt::format("{}: {}", name, applied.error().message);
      return tl::unexpected(std::move(applied.error()));
    }
  }
  return Tokenizer::Create(std::move(data));
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
  auto tokenizer = Load(file, folder);
  if (!tokenizer && !tokenizer.error().message.starts_with(file)) {
    tokenizer.error().message = fmt::format("{}: {}", file, tokenizer.error().message);
  }
  return tokenizer;
}

}  // namespace vivace
