#include "server/openai/embedding_vector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string_view>

namespace vivace::server {

std::vector<float> MakeEmbedding(std::span<const float> hidden, int32_t dimensions,
                                 bool normalize) {
  const auto kept = hidden.first(std::min(hidden.size(), static_cast<size_t>(dimensions)));
  const double power = std::inner_product(kept.begin(), kept.end(), kept.begin(), 0.0);
  if (!std::isfinite(power)) return {};
  const double scale = normalize && power > 0 ? 1 / std::sqrt(power) : 1;
  std::vector<float> out;
  out.reserve(kept.size());
  for (const float x : kept) out.push_back(static_cast<float>(x * scale));
  return out;
}

float CosineSimilarity(std::span<const float> a, std::span<const float> b) {
  const double dot = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  return static_cast<float>(std::clamp(dot, -1.0, 1.0));
}

std::string EncodeBase64(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bytes = std::as_bytes(values);
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out.push_back(k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=');
    }
  }
  return out;
}

}  // namespace vivace::server
