#include "text/charsmap.h"

#include <algorithm>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/unicode_class.h"

namespace vivace {
namespace {

uint32_t ReadWord(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
  return word;
}

// A unit of Darts-clone's double array.
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & ((1u << 31) - 1); }
uint32_t Label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::Parse(std::string_view blob) {
  const auto corrupt = [](std::string_view what) {
    return Fail(ErrorCode::kCorruptData, "bad_charsmap", "precompiled_charsmap",
                "the normalisation map {}", what);
  };
  if (blob.size() > limits::kMaxCharsmapBytes) return corrupt("is too large");
  if (blob.size() < 4) return corrupt("is cut");
  const uint32_t size = ReadWord(blob, 0);
  if (size % 4 != 0 || size == 0 || size > blob.size() - 4) return corrupt("has a size that lies");
  Charsmap map;
  map.units_.reserve(size / 4);
  for (size_t at = 4; at < 4 + size_t{size}; at += 4) map.units_.push_back(ReadWord(blob, at));
  map.strings_ = blob.substr(4 + size_t{size});
  return map;
}

std::optional<std::string_view> Charsmap::Replacement(std::string_view text) const {
  size_t node = Offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    if (node >= units_.size() || Label(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= Offset(unit);
    if (!HasLeaf(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const size_t begin = Value(units_[node]);
    if (begin >= strings_.size()) return std::nullopt;
    return std::string_view(strings_).substr(begin, strings_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void Charsmap::ApplyToCluster(std::string_view cluster, std::string* out) const {
  constexpr size_t kWholeBelow = 6;  // bytes
  if (cluster.size() < kWholeBelow) {
    if (const auto replacement = Replacement(cluster)) {
      out->append(*replacement);
      return;
    }
  }
  for (size_t pos = 0; pos < cluster.size();) {
    const size_t length = utf8::Decode(cluster, pos).length;
    const std::string_view part = cluster.substr(pos, length);
    out->append(Replacement(part).value_or(part));
    pos += length;
  }
}

std::string Charsmap::Apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = unicode::ClusterEnd(text, pos);
    ApplyToCluster(text.substr(pos, end - pos), &out);
    pos = end;
  }
  return out;
}

double Charsmap::MostGrowth() const {
  size_t longest = 1;
  for (size_t begin = 0; begin < strings_.size();) {
    const size_t end = std::min(strings_.find('\0', begin), strings_.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return static_cast<double>(longest);
}

}  // namespace vivace
