#include "base/output_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace vivace {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> CannotWrite(const std::string& path, const std::string& why) {
  return Fail(ErrorCode::kIo, "cannot_write", "", "{}: cannot be written: {}", path, why);
}

fs::path FolderOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Pipes and the like take what several have to say.
bool IsOneFile(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const fs::file_status there = fs::status(a, error);
  if (fs::exists(there)) return fs::is_regular_file(there) && fs::equivalent(a, b, error);
  return fs::weakly_canonical(fs::absolute(a), error) ==
         fs::weakly_canonical(fs::absolute(b), error);
}

Status Write(const std::string& path, const std::string& named, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return CannotWrite(named, std::strerror(errno));
  return {};
}

}  // namespace

Status CheckOutputPath(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const fs::path folder = FolderOf(path);
  if (fs::is_directory(path, error)) return CannotWrite(path, "it is a folder");
  if (!fs::is_directory(folder, error)) {
    return CannotWrite(path, "there is no folder '" + folder.string() + "'; make it");
  }
  const bool exists = fs::exists(path, error);
  if (access((exists ? fs::path(path) : folder).c_str(), W_OK) != 0) {
    return CannotWrite(path, std::strerror(errno));
  }
  return {};
}

Status CheckOutputPaths(const std::vector<std::string>& paths) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    VIVACE_RETURN_IF_ERROR(CheckOutputPath(*path));
    if (path->empty()) continue;
    const auto before = std::find_if(paths.begin(), path, [&](const std::string& other) {
      return !other.empty() && IsOneFile(other, *path);
    });
    if (before == path) continue;
    return CannotWrite(*path, "another output of this command goes there; give each its own file");
  }
  return {};
}

Status WriteOutput(const std::string& path, std::string_view text) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::exists(there) && !fs::is_regular_file(there)) return Write(path, path, text);
  // Behind a link, so that the link stays one; beside the file, so that the rename is one step.
  const fs::path target = fs::exists(there) ? fs::canonical(path, error) : fs::path(path);
  if (error && fs::exists(there)) return CannotWrite(path, error.message());
  if (access(FolderOf(target).c_str(), W_OK) != 0) return Write(path, path, text);
  const std::string part = target.string() + ".part";
  Status written = Write(part, path, text);
  if (written && std::rename(part.c_str(), target.c_str()) != 0) {
    written = CannotWrite(path, std::strerror(errno));
  }
  if (!written) unlink(part.c_str());
  return written;
}

}  // namespace vivace
