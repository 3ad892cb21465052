#include "engine/weight_cache/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file_io.h"
#include "base/units.h"
#include "engine/weight_cache/digest.h"
#include "engine/weight_cache/entry_file.h"

namespace vivace::weight_cache {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSpareDiskBytes = 1ull << 30;
constexpr size_t kMaxStemBytes = 64;
constexpr size_t kIdChars = 16;
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string Ending(Layout layout) {
  return layout == Layout::kReference ? "-reference.weights" : "-x86.weights";
}

// A name that EntryPath makes. A folder the user chose may hold *.weights of other programs.
bool IsEntryName(std::string_view name) {
  for (const Layout layout : {Layout::kReference, Layout::kX86}) {
    const std::string ending = Ending(layout);
    if (!name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    if (name.size() <= kIdChars) return false;
    const std::string_view id = name.substr(name.size() - kIdChars);
    return name[name.size() - kIdChars - 1] == '-' && id.find_first_not_of(kHexDigits) == id.npos;
  }
  return false;
}

// A folder made here is the user's own; one that was there stays as it is.
Status MakeFolder(const fs::path& folder) {
  fs::path made;
  for (const fs::path& part : folder) {
    made /= part;
    if (::mkdir(made.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR) {
      const int error = errno;
      std::error_code ignored;
      if (fs::is_directory(made, ignored)) continue;  // a parent we may not write to
      errno = error;
      return IoFault(made.string());
    }
  }
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    errno = ENOTDIR;
    return IoFault(folder.string());
  }
  return {};
}

struct Entry {
  fs::path path;
  uint64_t bytes;
  fs::file_time_type used;
};

// What a writer that died left behind; that of a living one is locked.
void RemoveIfOrphaned(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.valid() && LockNamed(file.fd(), path.string())) ::unlink(path.c_str());
}

std::vector<Entry> ListEntries(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    std::string_view name = file;
    const bool temporary = name.ends_with(kTempSuffix);
    if (temporary) name.remove_suffix(kTempSuffix.size());
    std::error_code gone;
    if (!IsEntryName(name) || at->symlink_status(gone).type() != fs::file_type::regular) continue;
    if (temporary) {
      RemoveIfOrphaned(at->path());
      continue;
    }
    const uint64_t bytes = at->file_size(gone);
    if (gone) continue;
    const fs::file_time_type used = at->last_write_time(gone);
    if (!gone) entries.push_back({at->path(), bytes, used});
  }
  return entries;
}

}  // namespace

std::string EntryPath(const std::string& folder, const std::string& model_path, Layout layout) {
  std::error_code error;
  fs::path path = fs::canonical(model_path, error);
  if (error) path = fs::absolute(model_path, error);
  std::string stem = path.stem().string().substr(0, kMaxStemBytes);
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  const uint64_t id = Digest(std::as_bytes(std::span(path.native())));
  return fmt::format("{}/{}-{:0{}x}{}", folder, stem, id, kIdChars, Ending(layout));
}

Status MakeRoom(const std::string& folder, const std::string& entry, uint64_t bytes,
                uint64_t most_bytes) {
  if (bytes > most_bytes) {
    return Fail(ErrorCode::kResourceExhausted, "too_large", "weight-cache-size",
                "the packed weights take {} and --weight-cache-size is {}", FormatBytes(bytes),
                FormatBytes(most_bytes));
  }
  VIVACE_RETURN_IF_ERROR(MakeFolder(folder));
  std::vector<Entry> others = ListEntries(folder);
  std::erase_if(others, [&](const Entry& e) { return e.path == fs::path(entry); });
  std::ranges::sort(others, {}, &Entry::used);
  uint64_t total = bytes;
  for (const Entry& other : others) total += other.bytes;
  for (const Entry& other : others) {
    if (total <= most_bytes) break;
    if (::unlink(other.path.c_str()) != 0 && errno != ENOENT) return IoFault(other.path.string());
    total -= other.bytes;
  }
  struct statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0) return IoFault(folder);
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free < bytes + kSpareDiskBytes) {
    return Fail(ErrorCode::kResourceExhausted, "disk_full", "",
                "{}: the packed weights take {} and the disk has {} left", folder,
                FormatBytes(bytes), FormatBytes(free));
  }
  return {};
}

}  // namespace vivace::weight_cache
