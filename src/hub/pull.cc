#include "hub/pull.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/units.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "hub/file_choice.h"
#include "hub/hub_client.h"

namespace vivace::hub {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSpareDiskBytes = 64u << 20;  // for everything else that lives there

std::string PathOf(const RepoCache& cache, const std::string& commit, const Choice& choice) {
  return choice.model.empty() ? cache.SnapshotPath(commit) : cache.FilePath(commit, choice.model);
}

Status CheckDisk(const std::string& folder, uint64_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= kSpareDiskBytes + needed) return {};
  return Fail(ErrorCode::kIo, "disk_full", "",
              "{} more are needed, beside {} that stay free, but the disk of {} has {} free "
              "(HF_HOME says where models go)",
              FormatBytes(needed), FormatBytes(kSpareDiskBytes), folder,
              FormatBytes(space.available));
}

// A pull on its way: what is to be got, and how far it is.
class Puller {
 public:
  Puller(const HubConfig& config, const PullRequest& request, const PullHooks& hooks)
      : request_(request),
        cache_(config.cache, request.name.repo),
        stop_(hooks.stop ? hooks.stop : [] { return false; }),
        on_progress_(hooks.on_progress ? hooks.on_progress : [](uint64_t, uint64_t) {}),
        client_(config, stop_) {}

  Result<PulledModel> Run() {
    VIVACE_ASSIGN(const RepoListing listing, client_.List(request_.name.repo, request_.revision));
    VIVACE_ASSIGN(const Choice choice, ChooseFiles(listing.files, request_.name));
    VIVACE_RETURN_IF_ERROR(Ask(listing.commit, choice));
    VIVACE_RETURN_IF_ERROR(cache_.MakeFolders());
    VIVACE_RETURN_IF_ERROR(CheckDisk(cache_.folder(), total_ - at_hand_));
    uint64_t before = 0;
    for (const DownloadJob& job : jobs_) {
      uint64_t now = 0;
      VIVACE_RETURN_IF_ERROR(Download(job, cache_, &client_, stop_, [&](uint64_t bytes) {
        now = bytes;
        on_progress_(before + bytes, total_);
      }));
      before += now;
    }
    // Last, so that the ref never leads to a snapshot that lacks something.
    VIVACE_RETURN_IF_ERROR(cache_.WriteRef(request_.revision, listing.commit));
    return PulledModel{.path = PathOf(cache_, listing.commit, choice),
                       .commit = listing.commit,
                       .bytes = before,
                       .downloaded = before - std::min(before, at_hand_)};
  }

 private:
  // What each file is, from the hub; fills jobs_ and the sums.
  Status Ask(const std::string& commit, const Choice& choice) {
    for (const std::string& file : choice.files) {
      VIVACE_ASSIGN(FileFacts facts, client_.Facts(request_.name.repo, commit, file));
      const uint64_t here =
          std::min(BytesAtHand(cache_, facts), facts.size.value_or(limits::kHubFileBytes));
      total_ += facts.size.value_or(here);
      at_hand_ += here;
      jobs_.push_back({request_.name.repo, commit, file, std::move(facts)});
    }
    return {};
  }

  const PullRequest& request_;
  const RepoCache cache_;
  const std::function<bool()> stop_;
  const std::function<void(uint64_t, uint64_t)> on_progress_;
  HubClient client_;
  std::vector<DownloadJob> jobs_;
  uint64_t total_ = 0;
  uint64_t at_hand_ = 0;
};

}  // namespace

Result<PulledModel> Pull(const HubConfig& config, const PullRequest& request,
                         const PullHooks& hooks) {
  VIVACE_RETURN_IF_ERROR(CheckRevision(request.revision));
  if (config.offline) return FindInCache(config, request);
  if (config.cache.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no_cache", "HF_HOME",
                "there is no place for models: set HF_HOME to a folder");
  }
  return Puller(config, request, hooks).Run();
}

Result<PulledModel> FindInCache(const HubConfig& config, const PullRequest& request) {
  VIVACE_RETURN_IF_ERROR(CheckRevision(request.revision));
  const RepoCache cache(config.cache, request.name.repo);
  const auto commit = cache.Commit(request.revision);
  const std::vector<std::string> files =
      commit && !config.cache.empty() ? cache.Files(*commit) : std::vector<std::string>();
  if (files.empty()) {
    return Fail(
        ErrorCode::kNotFound, "not_cached", request.name.repo,
        "{} (revision {}) is not in the cache{}", request.name.text(), request.revision,
        config.offline ? ", and offline mode is on: `vivace pull` it with the network" : "");
  }
  auto choice = ChooseFiles(files, request.name);
  if (!choice) {
    choice.error().message = "in the cache: " + choice.error().message;
    return tl::unexpected<Error>(std::move(choice.error()));
  }
  PulledModel found{.path = PathOf(cache, *commit, *choice), .commit = *commit};
  for (const std::string& file : choice->files) {
    std::error_code error;
    const uintmax_t bytes = fs::file_size(cache.FilePath(*commit, file), error);
    if (!error) found.bytes += bytes;
  }
  return found;
}

}  // namespace vivace::hub
