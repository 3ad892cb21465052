#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace vivace::cli {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> CannotWrite(const std::string& path, const std::string& why) {
  return Fail(ErrorCode::kIo, "cannot_write", "", "{}: cannot be written: {}", path, why);
}

}  // namespace

Status CheckOutputPath(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
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

Status WriteOutput(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);  // a pipe will do, too
  file << text;
  file.close();
  if (!file) return CannotWrite(path, std::strerror(errno));
  return {};
}

}  // namespace vivace::cli
