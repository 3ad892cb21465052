// The API keys that open a server: read from flags and files, compared in constant time.
//
// Only SHA-256 digests are kept. A candidate is hashed and compared with every digest there is, so
// how long a comparison takes tells neither which key is near nor how many bytes of it are right.
// Pure; a set is immutable and may be shared between threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vivace::server {

class KeySet {
 public:
  KeySet() = default;
  explicit KeySet(std::span<const std::string> keys);

  bool empty() const { return digests_.empty(); }
  size_t size() const { return digests_.size(); }
  // A number that stands for the key (never the key itself), if it is one of these.
  std::optional<uint64_t> Find(std::string_view candidate) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest Hash(std::string_view key);

  std::vector<Digest> digests_;
};

// A key that a header can carry: 1 to limits::kMaxApiKeyBytes of visible ASCII. The error says
// what is wrong, not what the key is. `flag` is the one it came by.
Status CheckKey(std::string_view key, std::string_view flag);

// A key a line; blanks around it, empty lines and lines that start with # do not count. The error
// names the line.
Result<std::vector<std::string>> ParseKeyFile(std::string_view text, std::string_view flag);
// The file's, at most limits::kMaxApiKeyFileBytes. Blocks on the disk.
Result<std::vector<std::string>> ReadKeyFile(const std::string& path, std::string_view flag);

}  // namespace vivace::server
