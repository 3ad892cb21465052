#include "hub/model_name.h"

#include <algorithm>
#include <array>

#include "base/limits.h"

namespace vivace::hub {
namespace {

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool AllOf(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return IsAlnum(c) || more.find(c) != std::string_view::npos;
  });
}

// The rule of the hub: no dot or dash at either end, none twice; "--" would also be ambiguous in
// the cache's folder names.
bool IsRepoPart(std::string_view part) {
  return !part.empty() && part.size() <= limits::kHubRepoPartBytes && AllOf(part, "._-") &&
         part.front() != '.' && part.front() != '-' && part.back() != '.' && part.back() != '-' &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

// `each` for every part between slashes; false once it says so.
template <typename Each>
bool EverySegment(std::string_view name, const Each& each) {
  while (true) {
    const size_t slash = name.find('/');
    if (!each(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

constexpr std::array<std::string_view, 5> kFileEndings = {".gguf", ".safetensors", ".json",
                                                          ".jinja", ".model"};

bool EndsLikeAFile(std::string_view text) {
  return std::any_of(kFileEndings.begin(), kFileEndings.end(),
                     [text](std::string_view ending) { return text.ends_with(ending); });
}

}  // namespace

std::optional<ModelName> ParseModelName(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view repo = text.substr(0, colon);
  const size_t slash = repo.find('/');
  if (slash == std::string_view::npos || EndsLikeAFile(repo) ||
      !IsRepoPart(repo.substr(0, slash)) || !IsRepoPart(repo.substr(slash + 1))) {
    return std::nullopt;
  }
  ModelName name{.repo = std::string(repo), .file = {}};
  if (colon != std::string_view::npos) {
    name.file = text.substr(colon + 1);
    if (!IsFileName(name.file)) return std::nullopt;
  }
  return name;
}

bool IsFileName(std::string_view name) {
  size_t segments = 0;
  return name.size() <= limits::kHubFileNameBytes && EverySegment(name, [&](std::string_view part) {
           const bool dots = part.find_first_not_of('.') == std::string_view::npos;  // or empty
           return !dots && part.size() <= 255 && AllOf(part, "._-+=@, ()") && ++segments <= 16;
         });
}

bool IsHostileFileName(std::string_view name) {
  if (name.empty() || name.front() == '/') return true;
  if (std::any_of(name.begin(), name.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
      })) {
    return true;
  }
  return !EverySegment(name, [](std::string_view part) { return part != ".."; });
}

Status CheckRevision(std::string_view revision) {
  if (AllOf(revision, "._-/") && IsFileName(revision)) return {};
  return Fail(ErrorCode::kInvalidArgument, "bad_value", "revision",
              "--revision is not the name of a branch or tag, nor a commit");
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsCommit(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), IsHex);
}

Result<std::string> BlobName(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  if (etag.size() < 8 || etag.size() > 128 || !AllOf(etag, "-_")) {
    return Fail(ErrorCode::kCorruptData, "bad_etag", "etag",
                "the hub gives a file an ETag that is no checksum");
  }
  return std::string(etag);
}

}  // namespace vivace::hub
