#include "engine/model_text.h"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>

#include "base/limits.h"
#include "base/mapped_file.h"
#include "formats/file_kind.h"
#include "formats/gguf.h"
#include "formats/json_file.h"
#include "text/load_tokenizer.h"
#include "text/tokenizer_gguf.h"

namespace vivace {
namespace {

namespace json = boost::json;

constexpr std::string_view kGgufKey = "tokenizer.chat_template";
constexpr std::string_view kTemplateKey = "chat_template";
constexpr std::string_view kDefaultName = "default";  // of a list of templates

Result<std::string> GgufTemplate(const formats::GgufFile& gguf) {
  VIVACE_ASSIGN(const std::string_view source, gguf.GetStringOr(kGgufKey, ""));
  return std::string(source);
}

Result<std::string> ReadText(const std::string& path) {
  VIVACE_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > limits::kTemplateSourceBytes) {
    return formats::FileFault(ErrorCode::kCorruptData, "file_limit", path, "",
                              fmt::format("has {} bytes, over the limit of {}", file.bytes().size(),
                                          limits::kTemplateSourceBytes));
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

// One template, or a list of named ones.
Result<std::string> TemplateMember(const std::string& path) {
  VIVACE_ASSIGN(const json::object config,
                formats::ReadJsonObject(path, limits::kMaxTokenizerJsonBytes));
  const json::value* member = config.if_contains(kTemplateKey);
  if (member == nullptr || member->is_null()) return std::string();
  if (const json::string* source = member->if_string()) return std::string(*source);
  if (const json::array* list = member->if_array()) {
    for (const json::value& item : *list) {
      const json::object* named = item.if_object();
      const json::value* name = named == nullptr ? nullptr : named->if_contains("name");
      const json::value* source = named == nullptr ? nullptr : named->if_contains("template");
      if (name != nullptr && name->is_string() && name->get_string() == kDefaultName &&
          source != nullptr && source->is_string()) {
        return std::string(source->get_string());
      }
    }
  }
  return formats::FileFault(ErrorCode::kCorruptData, "wrong_type", path, kTemplateKey,
                            "is neither a string nor a list with one named 'default'");
}

// A file of its own, else the tokenizer's configuration.
Result<std::string> FolderTemplate(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja, ignored)) return ReadText(jinja.string());
  for (const std::string_view name : {"chat_template.json", "tokenizer_config.json"}) {
    if (!std::filesystem::exists(folder / name, ignored)) continue;
    VIVACE_ASSIGN(std::string source, TemplateMember((folder / name).string()));
    if (!source.empty()) return source;
  }
  return std::string();
}

}  // namespace

Result<std::string> ReadChatTemplate(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return FolderTemplate(path);
  VIVACE_ASSIGN(const auto kind, formats::DetectFileKind(path));
  if (kind != formats::FileKind::kGguf) return std::string();
  VIVACE_ASSIGN(const auto gguf, formats::GgufFile::Open(path));
  return GgufTemplate(gguf);
}

Result<ModelText> ReadModelText(const model::ModelFile& file) {
  ModelText text;
  if (const formats::HfFolder* folder = file.folder()) {
    VIVACE_ASSIGN(text.tokenizer, LoadTokenizer(folder->folder()));
    VIVACE_ASSIGN(text.chat_template_source, FolderTemplate(folder->folder()));
  } else {
    VIVACE_ASSIGN(text.tokenizer, TokenizerOf(*file.gguf()));
    VIVACE_ASSIGN(text.chat_template_source, GgufTemplate(*file.gguf()));
  }
  const auto vocabulary = static_cast<size_t>(text.tokenizer->vocab_size());
  if (vocabulary > static_cast<size_t>(file.spec().vocab)) {
    return formats::FileFault(ErrorCode::kCorruptData, "vocab_mismatch", file.path(), "",
                              fmt::format("the tokenizer has {} tokens, the model only {}",
                                          vocabulary, file.spec().vocab));
  }
  text.eos_ids = text.tokenizer->eos_ids();
  for (const int32_t id : file.eos_ids()) {
    if (std::ranges::find(text.eos_ids, TokenId{id}) == text.eos_ids.end()) {
      text.eos_ids.push_back(id);
    }
  }
  return text;
}

}  // namespace vivace
