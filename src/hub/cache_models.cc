// Listing and removing what a cache holds; see cache.h.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "base/limits.h"
#include "hub/cache.h"
#include "hub/file_choice.h"
#include "hub/file_lock.h"

namespace vivace::hub {
namespace {

namespace fs = std::filesystem;

// Names in a folder, in order; bounded. Empty if there is no such folder.
std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error), end;
  while (!error && entry != end && names.size() < limits::kHubFiles) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "models--org--name" -> "org/name"
std::optional<std::string> RepoOf(const std::string& folder) {
  constexpr std::string_view kPrefix = "models--";
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string repo = folder.substr(kPrefix.size());
  const size_t dashes = repo.find("--");
  if (dashes == std::string::npos) return std::nullopt;
  repo.replace(dashes, 2, "/");
  const auto name = ParseModelName(repo);
  if (!name || !name->file.empty()) return std::nullopt;
  return repo;
}

// Commit -> the refs that name it.
std::map<std::string, std::string> Revisions(const RepoCache& repo) {
  std::map<std::string, std::string> revisions;
  const fs::path refs = fs::path(repo.folder()) / "refs";
  WalkFolder(refs.string(), [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().lexically_relative(refs).string();
    std::error_code ignored;
    if (!entry.is_regular_file(ignored) || !CheckRevision(name)) return;
    if (const auto commit = repo.Commit(name)) {
      std::string& names = revisions[*commit];
      names += names.empty() ? name : ", " + name;
    }
  });
  return revisions;
}

CachedModel Describe(const RepoCache& repo, const std::string& name, const std::string& commit,
                     const Choice& choice) {
  CachedModel model{.name = ModelName{name, choice.model}.text(), .revision = {}, .commit = commit};
  for (const std::string& file : choice.files) {
    std::error_code error;
    const fs::path path = repo.FilePath(commit, file);
    if (const uintmax_t bytes = fs::file_size(path, error); !error) model.bytes += bytes;
    const auto written = fs::last_write_time(path, error);
    if (error) continue;
    const auto system = std::chrono::file_clock::to_sys(written).time_since_epoch();
    model.modified_s = std::max(model.modified_s,
                                std::chrono::duration_cast<std::chrono::seconds>(system).count());
  }
  return model;
}

void ListRepo(const std::string& cache, const std::string& repo_name,
              std::vector<CachedModel>* out) {
  const RepoCache repo(cache, repo_name);
  const auto revisions = Revisions(repo);
  for (const std::string& commit : NamesIn(repo.SnapshotsPath())) {
    if (!IsCommit(commit)) continue;
    const auto ref = revisions.find(commit);
    for (const Choice& choice : AllModels(repo.Files(commit))) {
      CachedModel model = Describe(repo, repo_name, commit, choice);
      if (ref != revisions.end()) model.revision = ref->second;
      out->push_back(std::move(model));
    }
  }
}

uint64_t BytesBelow(const std::string& folder) {
  uint64_t bytes = 0;
  WalkFolder(folder, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.symlink_status(ignored).type() != fs::file_type::regular) return;
    const uintmax_t size = entry.file_size(ignored);
    if (!ignored) bytes += size;
  });
  return bytes;
}

tl::unexpected<Error> NotCached(const ModelName& name) {
  return Fail(ErrorCode::kNotFound, "not_found", name.text(),
              "{} is not in the cache (`vivace list` shows what is)", name.text());
}

// A link of a snapshot, and the blob's name it leads to.
struct Link {
  fs::path path;
  std::string blob;
};

std::string BlobOf(const fs::path& link) {
  std::error_code error;
  return fs::read_symlink(link, error).filename().string();
}

// The links of every snapshot, parted by whether they belong to `name`.
std::pair<std::vector<Link>, std::vector<Link>> PartLinks(const RepoCache& repo,
                                                          const ModelName& name) {
  std::vector<Link> chosen, others;
  for (const std::string& commit : NamesIn(repo.SnapshotsPath())) {
    if (!IsCommit(commit)) continue;
    const std::vector<std::string> files = repo.Files(commit);
    const auto choice = ChooseFiles(files, name);
    for (const std::string& file : files) {
      const fs::path path = repo.FilePath(commit, file);
      const bool mine = choice && std::ranges::find(choice->files, file) != choice->files.end();
      (mine ? chosen : others).push_back({path, BlobOf(path)});
    }
  }
  return {std::move(chosen), std::move(others)};
}

Result<uint64_t> RemoveFile(const RepoCache& repo, const ModelName& name) {
  const auto [chosen, others] = PartLinks(repo, name);
  if (chosen.empty()) return NotCached(name);
  std::set<std::string> kept;
  for (const Link& link : others) kept.insert(link.blob);
  uint64_t freed = 0;
  std::error_code error;
  for (const Link& link : chosen) {
    fs::remove(link.path, error);
    if (error)
      return Fail(ErrorCode::kIo, "io_error", "", "{}: {}", link.path.string(), error.message());
    const std::string blob = repo.BlobPath(link.blob);
    if (!BlobName(link.blob) || kept.contains(link.blob)) continue;
    const uintmax_t bytes = fs::file_size(blob, error);
    if (fs::remove(blob, error)) freed += bytes;
  }
  return freed;
}

Status CheckUnused(const RepoCache& repo, const std::string& name) {
  for (const std::string& lock : NamesIn(repo.locks())) {
    if (!FileLock::IsFree((fs::path(repo.locks()) / lock).string())) {
      return Fail(ErrorCode::kUnavailable, "in_use", name, "{} is just being pulled", name);
    }
  }
  return {};
}

}  // namespace

std::vector<CachedModel> ListModels(const std::string& cache) {
  std::vector<CachedModel> models;
  for (const std::string& folder : NamesIn(cache)) {
    if (const auto repo = RepoOf(folder)) ListRepo(cache, *repo, &models);
  }
  std::ranges::sort(models, {}, &CachedModel::name);
  return models;
}

Result<uint64_t> RemoveModel(const std::string& cache, const ModelName& name) {
  const RepoCache repo(cache, name.repo);
  std::error_code error;
  if (!fs::is_directory(repo.folder(), error)) return NotCached(name);
  VIVACE_RETURN_IF_ERROR(CheckUnused(repo, name.repo));
  if (!name.file.empty()) return RemoveFile(repo, name);
  const uint64_t bytes = BytesBelow(repo.folder());
  fs::remove_all(repo.folder(), error);
  if (error) return Fail(ErrorCode::kIo, "io_error", "", "{}: {}", repo.folder(), error.message());
  fs::remove_all(repo.locks(), error);
  return bytes;
}

}  // namespace vivace::hub
