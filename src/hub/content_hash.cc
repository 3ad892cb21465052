#include "hub/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "base/check.h"
#include "hub/model_name.h"

namespace vivace::hub {

HashKind KindOf(std::string_view blob_name) {
  const bool hex = std::ranges::all_of(blob_name, IsHex);
  if (hex && blob_name.size() == 64) return HashKind::kSha256;
  if (hex && blob_name.size() == 40) return HashKind::kGitBlob;
  return HashKind::kNone;
}

ContentHash::ContentHash(HashKind kind, uint64_t size)
    : context_(kind == HashKind::kNone ? nullptr : EVP_MD_CTX_new()) {
  if (kind == HashKind::kNone) return;
  const EVP_MD* digest = kind == HashKind::kSha256 ? EVP_sha256() : EVP_sha1();
  VIVACE_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_, digest, nullptr) == 1);
  if (kind == HashKind::kGitBlob) Feed({fmt::format("blob {}{}", size, '\0')});
}

ContentHash::~ContentHash() { EVP_MD_CTX_free(context_); }

void ContentHash::Feed(std::string_view bytes) {
  if (context_ != nullptr) EVP_DigestUpdate(context_, bytes.data(), bytes.size());
}

std::string ContentHash::Hex() {
  if (context_ == nullptr) return {};
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_, digest, &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace vivace::hub
