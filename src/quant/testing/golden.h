// How tests/golden/ writes weights: the name of a type, bytes in hex.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace vivace::quant {

inline std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

inline std::vector<float> FloatsFromHex(const std::string& hex) {
  const auto bytes = FromHex(hex);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A name no type has is a failure of the test.
inline DType TypeNamed(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (Info(static_cast<DType>(i)).name == name) return static_cast<DType>(i);
  }
  ADD_FAILURE() << name;
  return DType::kF32;
}

}  // namespace vivace::quant
