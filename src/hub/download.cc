#include "hub/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/file_io.h"
#include "base/limits.h"
#include "hub/content_hash.h"
#include "hub/file_lock.h"

namespace vivace::hub {
namespace {

namespace fs = std::filesystem;

// A try that got so much was worth it: the count begins anew.
constexpr uint64_t kProgress = 1u << 20;
constexpr size_t kReadBytes = 1u << 20;

std::string IncompletePath(const RepoCache& cache, const FileFacts& facts) {
  return cache.BlobPath(facts.blob) + ".incomplete";
}

// A blob on its way: an open .incomplete, appended to and hashed as it grows.
class Incomplete {
 public:
  Incomplete(const DownloadJob& job, std::string path, std::function<void(uint64_t)> on_bytes)
      : job_(job), path_(std::move(path)), on_bytes_(std::move(on_bytes)) {}

  // What an earlier try left is taken over, unless it is more than the file has.
  Status Open() {
    file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    struct stat facts {};
    if (!file_.valid() || fstat(file_.fd(), &facts) != 0 || !S_ISREG(facts.st_mode))
      return SystemError();
    size_ = static_cast<uint64_t>(facts.st_size);
    if (size_ > job_.facts.size.value_or(limits::kHubFileBytes)) return Restart();
    stitched_ = size_ > 0;
    on_bytes_(size_);
    return {};
  }

  uint64_t size() const { return size_; }
  // It may be of several answers, or of another program: wrong for no fault of the hub's.
  bool stitched() const { return stitched_; }
  bool complete() const { return job_.facts.size && size_ == *job_.facts.size; }

  Status Append(uint64_t begin, std::string_view piece) {
    if (begin == 0 && size_ > 0 && !appending_) VIVACE_RETURN_IF_ERROR(Restart());
    appending_ = true;
    if (piece.size() > job_.facts.size.value_or(limits::kHubFileBytes) - size_) {
      return Fail(ErrorCode::kCorruptData, "wrong_size", job_.file,
                  "{} of {}: the hub sends more than the {} bytes it told", job_.file, job_.repo,
                  job_.facts.size.value_or(limits::kHubFileBytes));
    }
    if (!WriteAll(file_.fd(), std::as_bytes(std::span(piece)), size_)) return SystemError();
    if (hash_) hash_->Feed(piece);
    size_ += piece.size();
    on_bytes_(size_);
    return {};
  }

  // Less came than the hub told; its size is known.
  tl::unexpected<Error> Cut() const {
    return Fail(ErrorCode::kIo, "cut", job_.file, "{} of {}: {} bytes came instead of {}",
                job_.file, job_.repo, size_, *job_.facts.size);
  }

  // Before each try: the next piece may say that it begins at 0 again.
  Status BeginTry() {
    appending_ = false;
    stitched_ = stitched_ || size_ > 0;
    // The hash runs along if the size is known (git's begins with it); else Finish reads it all.
    if (!hash_ && job_.facts.size) VIVACE_RETURN_IF_ERROR(HashWhatIsThere(*job_.facts.size));
    return {};
  }

  // Checks all of it; a file with the wrong content is gone afterwards.
  Status Finish() {
    if (job_.facts.size && !complete()) return Cut();
    if (!hash_) VIVACE_RETURN_IF_ERROR(HashWhatIsThere(size_));
    const std::string found = hash_->Hex();
    if (KindOf(job_.facts.blob) != HashKind::kNone && found != job_.facts.blob) {
      unlink(path_.c_str());
      return Fail(ErrorCode::kCorruptData, "checksum_mismatch", job_.file,
                  "{} of {}: the checksum of what came is wrong ({} instead of {}); it was deleted",
                  job_.file, job_.repo, found, job_.facts.blob);
    }
    if (fsync(file_.fd()) != 0) return SystemError();
    return {};
  }

  Status Restart() {
    if (ftruncate(file_.fd(), 0) != 0) return SystemError();
    size_ = 0;
    stitched_ = false;
    hash_.reset();
    on_bytes_(0);
    if (job_.facts.size) return HashWhatIsThere(*job_.facts.size);
    return {};
  }

 private:
  tl::unexpected<Error> SystemError() const {
    const int code = errno;
    if (code == ENOSPC || code == EDQUOT) {
      return Fail(ErrorCode::kIo, "disk_full", job_.file,
                  "the disk is full; what came of {} stays for the next time", job_.file);
    }
    return Fail(ErrorCode::kIo, "io_error", job_.file, "{}: {}", path_, std::strerror(code));
  }

  Status HashWhatIsThere(uint64_t whole) {
    hash_.emplace(KindOf(job_.facts.blob), whole);
    std::vector<char> buffer(std::min<uint64_t>(size_, kReadBytes));
    for (uint64_t at = 0; at < size_; at += buffer.size()) {
      buffer.resize(std::min<uint64_t>(buffer.size(), size_ - at));
      if (!ReadAll(file_.fd(), std::as_writable_bytes(std::span(buffer)), at)) return SystemError();
      hash_->Feed({buffer.data(), buffer.size()});
    }
    return {};
  }

  const DownloadJob& job_;
  const std::string path_;
  const std::function<void(uint64_t)> on_bytes_;
  Descriptor file_;
  uint64_t size_ = 0;
  bool appending_ = false;
  bool stitched_ = false;
  std::optional<ContentHash> hash_;
};

// Until all of it is there; a try that brought something makes the next ones free.
Status Fetch(const DownloadJob& job, HubClient* client, Incomplete* blob) {
  bool restarted = false;
  for (int tries = 0; !blob->complete();) {
    VIVACE_RETURN_IF_ERROR(blob->BeginTry());
    const uint64_t before = blob->size();
    Status got = client->Get(
        job.repo, job.commit, job.file, job.facts, before,
        [blob](uint64_t begin, std::string_view piece) { return blob->Append(begin, piece); });
    if (got && (!job.facts.size || blob->complete())) return {};
    if (got) got = blob->Cut();
    if (got.error().reason == "bad_range" && !std::exchange(restarted, true)) {
      VIVACE_RETURN_IF_ERROR(blob->Restart());
      continue;
    }
    if (blob->size() >= before + kProgress) tries = 0;
    if (!client->WaitToRetry(got.error(), &tries)) return got;
  }
  return {};
}

// All of it at `path`, checked. What was put together from pieces gets a second chance as a whole.
Status Complete(const DownloadJob& job, const std::string& path, HubClient* client,
                const std::function<void(uint64_t)>& on_bytes) {
  for (int round = 0;; ++round) {
    Incomplete blob(job, path, on_bytes);
    VIVACE_RETURN_IF_ERROR(blob.Open());
    VIVACE_RETURN_IF_ERROR(Fetch(job, client, &blob));
    Status sound = blob.Finish();
    const bool again = !sound && sound.error().reason == "checksum_mismatch" && blob.stitched();
    if (!again || round == 1) return sound;
  }
}

}  // namespace

uint64_t BytesAtHand(const RepoCache& cache, const FileFacts& facts) {
  std::error_code error;
  const uintmax_t blob = fs::file_size(cache.BlobPath(facts.blob), error);
  if (!error) return blob;
  const uintmax_t part = fs::file_size(IncompletePath(cache, facts), error);
  return error || part > facts.size.value_or(limits::kHubFileBytes) ? 0 : part;
}

Status Download(const DownloadJob& job, const RepoCache& cache, HubClient* client,
                const std::function<bool()>& stop, const std::function<void(uint64_t)>& on_bytes) {
  VIVACE_ASSIGN(const FileLock lock, FileLock::Take(cache.LockPath(job.facts.blob), stop));
  const std::string path = cache.BlobPath(job.facts.blob);
  std::error_code error;
  if (!fs::exists(path, error)) {
    const std::string incomplete = IncompletePath(cache, job.facts);
    VIVACE_RETURN_IF_ERROR(Complete(job, incomplete, client, on_bytes));
    fs::rename(incomplete, path, error);
    if (error) return Fail(ErrorCode::kIo, "io_error", job.file, "{}: {}", path, error.message());
  }
  if (job.facts.size) on_bytes(*job.facts.size);
  return cache.Link(job.commit, job.file, job.facts.blob);
}

}  // namespace vivace::hub
