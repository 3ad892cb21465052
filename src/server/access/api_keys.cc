#include "server/access/api_keys.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/file_io.h"
#include "base/limits.h"
#include "base/trim.h"

namespace vivace::server {
namespace {

tl::unexpected<Error> BadFile(std::string_view flag, const std::string& path,
                              std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, "bad_key_file", std::string(flag),
              "--{} {} cannot be used: {}; give a plain file with one key a line", flag, path, why);
}

Status CheckCount(size_t count, std::string_view flag) {
  if (count <= limits::kMaxApiKeys) return {};
  return Fail(ErrorCode::kInvalidArgument, "too_many_keys", std::string(flag),
              "--{} gives more than {} keys", flag, limits::kMaxApiKeys);
}

}  // namespace

KeySet::Digest KeySet::Hash(std::string_view key) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

KeySet::KeySet(std::span<const std::string> keys) {
  digests_.reserve(keys.size());
  for (const std::string& key : keys) digests_.push_back(Hash(key));
}

std::optional<uint64_t> KeySet::Find(std::string_view candidate) const {
  const Digest wanted = Hash(candidate);
  bool found = false;
  for (const Digest& digest : digests_) {
    found |= CRYPTO_memcmp(wanted.data(), digest.data(), digest.size()) == 0;
  }
  if (!found) return std::nullopt;
  uint64_t number = 0;
  std::memcpy(&number, wanted.data(), sizeof number);
  return number;
}

Status CheckKey(std::string_view key, std::string_view flag) {
  const bool visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!key.empty() && key.size() <= limits::kMaxApiKeyBytes && visible) return {};
  return Fail(ErrorCode::kInvalidArgument, "bad_key", std::string(flag),
              "a key of --{} {}; give 1 to {} letters, digits and signs", flag,
              key.empty() ? "is empty"
              : visible   ? "is too long"
                          : "has blanks, control characters or bytes beyond ASCII",
              limits::kMaxApiKeyBytes);
}

Result<std::vector<std::string>> ParseKeyFile(std::string_view text, std::string_view flag) {
  std::vector<std::string> keys;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    if (Status status = CheckKey(line, flag); !status) {
      status.error().message = fmt::format("line {}: {}", number, status.error().message);
      return tl::unexpected<Error>(std::move(status.error()));
    }
    keys.emplace_back(line);
    VIVACE_RETURN_IF_ERROR(CheckCount(keys.size(), flag));
  }
  return keys;
}

Result<std::vector<std::string>> ReadKeyFile(const std::string& path, std::string_view flag) {
  // Without waiting, or a pipe without a writer would hold us.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return BadFile(flag, path, std::strerror(errno));
  struct stat info;
  if (fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return BadFile(flag, path, "it is no plain file");
  }
  if (info.st_size > static_cast<off_t>(limits::kMaxApiKeyFileBytes)) {
    return BadFile(flag, path,
                   fmt::format("it has more than {} bytes", limits::kMaxApiKeyFileBytes));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (!ReadAll(file.fd(), std::as_writable_bytes(std::span(text)), 0)) {
    return BadFile(flag, path, errno != 0 ? std::strerror(errno) : "it changed while it was read");
  }
  return ParseKeyFile(text, flag);
}

}  // namespace vivace::server
