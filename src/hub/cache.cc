#include "hub/cache.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/limits.h"

namespace vivace::hub {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> IoError(const std::string& path, const std::error_code& error) {
  return Fail(ErrorCode::kIo, "io_error", "", "{}: {}", path, error.message());
}

Status MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return IoError(path.string(), error);
  return {};
}

std::string FolderName(const std::string& repo) {
  const size_t slash = repo.find('/');
  return fmt::format("models--{}--{}", repo.substr(0, slash), repo.substr(slash + 1));
}

// A name beside `path` that no other writer uses.
std::string TemporaryName(const fs::path& path) {
  static std::atomic<unsigned> counter = 0;
  return fmt::format("{}.{}.{}.tmp", path.string(), getpid(), counter++);
}

Status Rename(const std::string& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return {};
  std::error_code ignored;
  fs::remove(from, ignored);
  return IoError(to.string(), error);
}

}  // namespace

RepoCache::RepoCache(const std::string& cache, const std::string& repo)
    : folder_((fs::path(cache) / FolderName(repo)).string()),
      locks_((fs::path(cache) / ".locks" / FolderName(repo)).string()) {}

std::string RepoCache::BlobPath(std::string_view blob) const {
  return fmt::format("{}/blobs/{}", folder_, blob);
}

std::string RepoCache::LockPath(std::string_view blob) const {
  return fmt::format("{}/{}.lock", locks_, blob);
}

std::string RepoCache::SnapshotsPath() const { return folder_ + "/snapshots"; }

std::string RepoCache::SnapshotPath(std::string_view commit) const {
  return fmt::format("{}/{}", SnapshotsPath(), commit);
}

std::string RepoCache::FilePath(std::string_view commit, std::string_view file) const {
  return fmt::format("{}/{}", SnapshotPath(commit), file);
}

Status RepoCache::MakeFolders() const {
  for (const fs::path& path : {fs::path(folder_) / "blobs", fs::path(folder_) / "refs",
                               fs::path(SnapshotsPath()), fs::path(locks_)}) {
    VIVACE_RETURN_IF_ERROR(MakeFolder(path));
  }
  return {};
}

std::optional<std::string> RepoCache::Commit(std::string_view revision) const {
  if (IsCommit(revision)) return std::string(revision);
  std::ifstream file(fmt::format("{}/refs/{}", folder_, revision));
  std::string commit(41, '\0');
  file.read(commit.data(), static_cast<std::streamsize>(commit.size()));
  commit.resize(static_cast<size_t>(file.gcount()));
  if (commit.ends_with('\n')) commit.pop_back();
  if (!IsCommit(commit)) return std::nullopt;
  return commit;
}

Status RepoCache::WriteRef(std::string_view revision, std::string_view commit) const {
  if (revision == commit || Commit(revision) == commit) return {};
  const fs::path path = fmt::format("{}/refs/{}", folder_, revision);
  VIVACE_RETURN_IF_ERROR(MakeFolder(path.parent_path()));
  const std::string temporary = TemporaryName(path);
  std::ofstream file(temporary, std::ios::binary);
  file << commit;
  file.close();
  if (!file) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    return Fail(ErrorCode::kIo, "io_error", "", "{}: cannot be written", path.string());
  }
  return Rename(temporary, path);
}

Status RepoCache::Link(std::string_view commit, std::string_view file,
                       std::string_view blob) const {
  const fs::path path = FilePath(commit, file);
  VIVACE_RETURN_IF_ERROR(MakeFolder(path.parent_path()));
  std::string target = "../../";
  for (const char c : file) {
    if (c == '/') target += "../";
  }
  target += fmt::format("blobs/{}", blob);
  std::error_code error;
  if (fs::read_symlink(path, error) == target) return {};
  const std::string temporary = TemporaryName(path);
  fs::create_symlink(target, temporary, error);
  if (error) return IoError(path.string(), error);
  return Rename(temporary, path);
}

std::vector<std::string> RepoCache::Files(std::string_view commit) const {
  const std::string snapshot = SnapshotPath(commit);
  std::vector<std::string> names;
  WalkFolder(snapshot, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (!entry.is_regular_file(ignored)) return;  // through the link: the content is there
    std::string name = entry.path().lexically_relative(snapshot).string();
    if (IsFileName(name)) names.push_back(std::move(name));
  });
  return names;
}

void WalkFolder(const std::string& folder,
                const std::function<void(const fs::directory_entry&)>& each) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  for (size_t seen = 0; !error && entry != end && seen < limits::kHubFiles; ++seen) {
    each(*entry);
    entry.increment(error);
  }
}

}  // namespace vivace::hub
