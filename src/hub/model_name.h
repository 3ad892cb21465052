// "org/name[:file]", and what the parts of a hub's names may be before they become paths or URLs.
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vivace::hub {

struct ModelName {
  std::string repo;  // "org/name"
  std::string file;  // a file of it, or what tells a GGUF's name, such as "Q4_K_M"; may be empty
  std::string text() const { return file.empty() ? repo : repo + ":" + file; }
};

// Nothing where `text` can't be meant as a model of a hub: a path, a file's name, a URL.
std::optional<ModelName> ParseModelName(std::string_view text);

// A name a hub gives to a file, before it becomes a path below a folder of ours: segments of
// letters, digits and "._-+=@, ()", none empty or dots alone.
bool IsFileName(std::string_view name);
// Names that only an attacker or a broken hub would give: absolute, or with a ".." segment, a
// backslash or a control character.
bool IsHostileFileName(std::string_view name);

// A branch, tag or commit ("main", "refs/pr/1").
Status CheckRevision(std::string_view revision);
bool IsHex(char c);                    // 0 to 9, a to f
bool IsCommit(std::string_view text);  // 40 lower-case hex digits

// Of an ETag header (quotes and W/ gone), as the name of a blob; reason bad_etag.
Result<std::string> BlobName(std::string_view etag);

}  // namespace vivace::hub
