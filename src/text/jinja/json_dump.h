// The tojson filter of Hugging Face: json.dumps with ensure_ascii off and no HTML escaping.
#pragma once

#include <optional>

#include "text/jinja/runtime.h"

namespace vivace::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string_view> indent;  // one level's
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};

const Str* ToJson(Runtime& runtime, Value value, const JsonStyle& style);

}  // namespace vivace::jinja
