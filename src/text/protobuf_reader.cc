#include "text/protobuf_reader.h"

namespace vivace {
namespace {

tl::unexpected<Error> Bad(std::string_view what) {
  return Fail(ErrorCode::kCorruptData, "bad_protobuf", "", "not a SentencePiece model: {}", what);
}

}  // namespace

Result<uint64_t> ProtobufReader::Varint() {
  constexpr size_t kMaxBytes = 10;
  uint64_t value = 0;
  for (size_t i = 0; i < kMaxBytes && i < left_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(left_[i]);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    left_.remove_prefix(i + 1);
    return value;
  }
  return Bad("a number is cut or too long");
}

Result<std::string_view> ProtobufReader::Take(uint64_t bytes) {
  if (bytes > left_.size()) return Bad("a field is longer than what holds it");
  const std::string_view taken = left_.substr(0, bytes);
  left_.remove_prefix(bytes);
  return taken;
}

Result<ProtobufField> ProtobufReader::Next() {
  enum { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  VIVACE_ASSIGN(const uint64_t tag, Varint());
  ProtobufField field;
  field.number = tag >> 3;
  const uint64_t kind = tag & 7;
  if (field.number == 0) return Bad("a field has no number");
  if (kind == kVarint) {
    VIVACE_ASSIGN(field.value, Varint());
  } else if (kind == kBytes) {
    VIVACE_ASSIGN(const uint64_t size, Varint());
    VIVACE_ASSIGN(field.bytes, Take(size));
  } else if (kind == kFixed32 || kind == kFixed64) {
    VIVACE_ASSIGN(const std::string_view raw, Take(kind == kFixed32 ? 4 : 8));
    for (size_t i = raw.size(); i-- > 0;) {
      field.value = field.value << 8 | static_cast<unsigned char>(raw[i]);
    }
  } else {
    return Bad("a field of unknown kind");
  }
  return field;
}

}  // namespace vivace
