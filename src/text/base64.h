// Base64, as tokenizer files embed binary parts with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vivace {

// nullopt for what is not base64 with its padding (RFC 4648, section 4).
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace vivace
