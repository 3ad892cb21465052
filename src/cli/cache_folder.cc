#include "cli/cache_folder.h"

#include <cstdlib>
#include <filesystem>

namespace vivace::cli {
namespace {

// A relative path means nothing here (XDG says to ignore it).
std::filesystem::path AbsolutePathIn(const char* variable) {
  const char* value = std::getenv(variable);
  const std::filesystem::path path = value != nullptr ? value : "";
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

std::string UserCacheFolder() {
  if (const auto cache = AbsolutePathIn("XDG_CACHE_HOME"); !cache.empty()) {
    return (cache / "vivace").string();
  }
  const auto home = AbsolutePathIn("HOME");
  return home.empty() ? "" : (home / ".cache" / "vivace").string();
}

}  // namespace vivace::cli
