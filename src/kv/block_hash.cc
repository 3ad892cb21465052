#include "kv/block_hash.h"

// The EVP digests of OpenSSL 3 allocate and take a lock in every Init, which a step must not; the
// functions under them do neither.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <cstring>

#include "base/check.h"

namespace vivace {
namespace {

// First byte of everything hashed: what kind of thing it is.
enum class Tag : uint8_t { kNamespace = 'N', kSalt = 'S', kAdapter = 'A', kBlock = 'B' };

// Feeds tagged, length-prefixed fields.
class Digest {
 public:
  Digest() { VIVACE_CHECK(SHA256_Init(&context_) == 1); }

  void Field(Tag tag, const void* data, uint64_t num_bytes) {
    std::array<uint8_t, 9> head;
    head[0] = static_cast<uint8_t>(tag);
    std::memcpy(head.data() + 1, &num_bytes, sizeof num_bytes);
    Bytes(head.data(), head.size());
    Bytes(data, num_bytes);
  }

  void Bytes(const void* data, size_t num_bytes) {
    VIVACE_CHECK(SHA256_Update(&context_, data, num_bytes) == 1);
  }

  BlockHash Finish() {
    BlockHash hash;
    static_assert(hash.size() == SHA256_DIGEST_LENGTH);
    VIVACE_CHECK(SHA256_Final(hash.data(), &context_) == 1);
    return hash;
  }

 private:
  SHA256_CTX context_;
};

}  // namespace

BlockHash NamespaceHash(std::string_view salt, std::string_view adapter) {
  Digest digest;
  digest.Field(Tag::kNamespace, nullptr, 0);
  digest.Field(Tag::kSalt, salt.data(), salt.size());
  digest.Field(Tag::kAdapter, adapter.data(), adapter.size());
  return digest.Finish();
}

BlockHash Sha256Hasher::Hash(const BlockHash& parent, std::span<const TokenId> tokens) {
  Digest digest;
  digest.Bytes(parent.data(), parent.size());  // of fixed size, so it needs no prefix
  digest.Field(Tag::kBlock, tokens.data(), tokens.size_bytes());
  return digest.Finish();
}

}  // namespace vivace
