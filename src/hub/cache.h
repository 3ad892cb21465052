// Hugging Face's cache on disk, exactly as its own programs keep it:
//
//   CACHE/models--org--name/blobs/<etag>                     contents, by checksum
//                          /snapshots/<commit>/<file>        a relative link to a blob
//                          /refs/<revision>                  the commit a branch or tag was seen at
//   CACHE/.locks/models--org--name/<etag>.lock
//
// What another program wrote is read as untrusted: names are checked, walks are bounded. All calls
// touch the disk; any thread, and several processes at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_name.h"

namespace vivace::hub {

class RepoCache {
 public:
  RepoCache(const std::string& cache, const std::string& repo);

  std::string folder() const { return folder_; }
  const std::string& locks() const { return locks_; }  // the folder of its locks
  std::string BlobPath(std::string_view blob) const;
  std::string LockPath(std::string_view blob) const;
  std::string SnapshotPath(std::string_view commit) const;
  std::string SnapshotsPath() const;
  std::string FilePath(std::string_view commit, std::string_view file) const;

  // The folders a download needs.
  Status MakeFolders() const;
  // The commit that `revision` was last seen at; a commit is itself.
  std::optional<std::string> Commit(std::string_view revision) const;
  Status WriteRef(std::string_view revision, std::string_view commit) const;
  // Puts `file` of a snapshot in place, a link to `blob`; replaces what is there.
  Status Link(std::string_view commit, std::string_view file, std::string_view blob) const;
  // The names of the files a snapshot has, of which the contents are there too.
  std::vector<std::string> Files(std::string_view commit) const;

 private:
  std::string folder_;
  std::string locks_;
};

// Everything below `folder`, at most kHubFiles entries; nothing if there is no such folder.
void WalkFolder(const std::string& folder,
                const std::function<void(const std::filesystem::directory_entry&)>& each);

// What `vivace list` shows: one for each model a snapshot of a ref holds.
struct CachedModel {
  std::string name;  // "org/name", or "org/name:file" for a GGUF
  std::string revision;
  std::string commit;
  uint64_t bytes = 0;
  int64_t modified_s = 0;  // of the newest file, since 1970
};

// By name. An absent cache is empty.
std::vector<CachedModel> ListModels(const std::string& cache);

// Removes all of a repository, or one file of it (with the parts of a split GGUF) in every
// snapshot, and says how many bytes that freed. Reasons: not_found, in_use (somebody is getting a
// file of it), io_error.
Result<uint64_t> RemoveModel(const std::string& cache, const ModelName& name);

}  // namespace vivace::hub
