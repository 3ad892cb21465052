#include "kv/block_hash.h"

#include <openssl/evp.h>

#include <cstring>

#include "base/check.h"

namespace vivace {
namespace {

// First byte of everything hashed: what kind of thing it is.
enum class Tag : uint8_t { kNamespace = 'N', kSalt = 'S', kAdapter = 'A', kBlock = 'B' };

// Feeds tagged, length-prefixed fields. OpenSSL fails here only when it is out of memory or broken.
class Digest {
 public:
  explicit Digest(EVP_MD_CTX* context) : context_(context) {
    VIVACE_CHECK(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
  }

  void Field(Tag tag, const void* data, uint64_t num_bytes) {
    std::array<uint8_t, 9> head;
    head[0] = static_cast<uint8_t>(tag);
    std::memcpy(head.data() + 1, &num_bytes, sizeof num_bytes);
    Bytes(head.data(), head.size());
    Bytes(data, num_bytes);
  }

  void Bytes(const void* data, size_t num_bytes) {
    VIVACE_CHECK(EVP_DigestUpdate(context_, data, num_bytes) == 1);
  }

  BlockHash Finish() {
    BlockHash hash;
    unsigned int num_bytes = 0;
    VIVACE_CHECK(EVP_DigestFinal_ex(context_, hash.data(), &num_bytes) == 1);
    VIVACE_CHECK(num_bytes == hash.size());
    return hash;
  }

 private:
  EVP_MD_CTX* context_;
};

}  // namespace

BlockHash NamespaceHash(std::string_view salt, std::string_view adapter) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  VIVACE_CHECK(context != nullptr);
  Digest digest(context.get());
  digest.Field(Tag::kNamespace, nullptr, 0);
  digest.Field(Tag::kSalt, salt.data(), salt.size());
  digest.Field(Tag::kAdapter, adapter.data(), adapter.size());
  return digest.Finish();
}

Sha256Hasher::Sha256Hasher() : context_(EVP_MD_CTX_new()) { VIVACE_CHECK(context_ != nullptr); }

Sha256Hasher::~Sha256Hasher() { EVP_MD_CTX_free(context_); }

BlockHash Sha256Hasher::Hash(const BlockHash& parent, std::span<const TokenId> tokens) {
  Digest digest(context_);
  digest.Bytes(parent.data(), parent.size());  // of fixed size, so it needs no prefix
  digest.Field(Tag::kBlock, tokens.data(), tokens.size_bytes());
  return digest.Finish();
}

}  // namespace vivace
