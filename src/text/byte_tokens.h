// The tokens <0x00> to <0xFF> that stand for bytes, for models that fall back to them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "text/tokenizer_data.h"

namespace vivace {

struct ByteTokens {
  std::array<TokenId, 256> ids;  // -1: no token for the byte

  ByteTokens() { ids.fill(-1); }
  explicit ByteTokens(std::span<const std::string> tokens) : ByteTokens() {
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (const auto byte = ParseByteToken(tokens[id])) ids[*byte] = static_cast<TokenId>(id);
    }
  }

  // Calls add(id) for each byte of `text` and says yes, or neither if a byte has no token.
  template <typename Add>
  bool ForEach(std::string_view text, Add add) const {
    for (const char c : text) {
      if (ids[static_cast<unsigned char>(c)] < 0) return false;
    }
    for (const char c : text) add(ids[static_cast<unsigned char>(c)]);
    return true;
  }
};

}  // namespace vivace
