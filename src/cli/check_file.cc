#include "cli/check_file.h"

#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "cli/template_file.h"
#include "engine/model_text.h"
#include "formats/file_kind.h"
#include "formats/safetensors.h"
#include "model/loaded_model.h"
#include "text/chat_template.h"
#include "text/load_tokenizer.h"

namespace vivace::cli {
namespace {

namespace fs = std::filesystem;

// A template that is no text is refused; one that is beyond us only costs the chat endpoint.
Status CheckModel(const std::string& path) {
  VIVACE_ASSIGN(const model::ModelFile file, model::OpenModel(path));
  VIVACE_ASSIGN(const ModelText text, ReadModelText(file));
  return {};
}

// Weights alone are a container; beside a configuration they are a model.
Status CheckSafetensors(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(fs::path(path).parent_path() / "config.json", ignored)) return CheckModel(path);
  VIVACE_ASSIGN(const auto file, formats::SafetensorsFile::Open(path));
  return {};
}

Status CheckTokenizer(const std::string& path) {
  VIVACE_ASSIGN(const auto tokenizer, LoadTokenizer(path));
  return {};
}

// A template is parsed, then rendered over a short conversation: budgets and forbidden things show
// only then. A template's own refusal (raise_exception) is its right.
Status CheckTemplate(const std::string& path) {
  VIVACE_ASSIGN(const ChatTemplate parsed, LoadTemplate(path));
  ChatRenderInput input;
  input.messages = {{{"role", "user"}, {"content", "Hello"}}};
  input.now = LocalTime();
  auto rendered = parsed.Render(input);
  if (rendered || rendered.error().reason == "template_error") return {};
  rendered.error().message = fmt::format("{}: {}", path, rendered.error().message);
  return tl::unexpected<Error>(std::move(rendered.error()));
}

}  // namespace

Status CheckFile(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return CheckModel(path);
  VIVACE_ASSIGN(const formats::FileKind kind, formats::DetectFileKind(path));
  switch (kind) {
    case formats::FileKind::kGguf:
      return CheckModel(path);
    case formats::FileKind::kSafetensors:
      return CheckSafetensors(path);
    case formats::FileKind::kTokenizerJson:
      return CheckTokenizer(path);
    case formats::FileKind::kChatTemplate:
      return CheckTemplate(path);
    case formats::FileKind::kUnknown:
      break;
  }
  return Fail(ErrorCode::kUnsupported, "unknown_file", path,
              "{}: neither a GGUF, safetensors or tokenizer.json file nor a .jinja template", path);
}

}  // namespace vivace::cli
