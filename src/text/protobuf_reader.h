// ProtobufReader: the fields of one protocol buffer message, in order; every length is checked.
// Holds views into the message.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace vivace {

struct ProtobufField {
  uint64_t number = 0;
  uint64_t value = 0;      // of a number, fixed or not
  std::string_view bytes;  // of a string or a message

  float AsFloat() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : left_(message) {}

  bool AtEnd() const { return left_.empty(); }
  // bad_protobuf for what is not one.
  Result<ProtobufField> Next();

 private:
  Result<uint64_t> Varint();
  Result<std::string_view> Take(uint64_t bytes);

  std::string_view left_;
};

}  // namespace vivace
