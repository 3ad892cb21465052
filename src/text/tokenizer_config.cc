#include "text/tokenizer_config.h"

#include <algorithm>

#include "text/tokenizer_json_reader.h"

namespace vivace {
namespace {

using namespace tokenizer_json;  // NOLINT: the readers of these files are the same

// Sets `id` to that of a token by its text, "<s>" or {"content": "<s>"}, if there is one.
Status FindToken(const json::object& root, std::string_view key, const TokenizerData& data,
                 std::optional<TokenId>* id) {
  const json::value* value = Get(root, key);
  if (value != nullptr && value->is_object()) value = Get(value->get_object(), "content");
  if (value == nullptr) return {};
  if (!value->is_string()) return WrongType(key, "a token's text");
  const auto found = std::ranges::find(data.tokens, std::string_view(value->get_string()));
  if (value->get_string().empty() || found == data.tokens.end()) return {};
  *id = static_cast<TokenId>(found - data.tokens.begin());
  return {};
}

}  // namespace

Status ApplyTokenizerConfig(const json::object& root, TokenizerData* data) {
  VIVACE_RETURN_IF_ERROR(FindToken(root, "bos_token", *data, &data->bos));
  VIVACE_RETURN_IF_ERROR(FindToken(root, "eos_token", *data, &data->eos));
  return FindToken(root, "pad_token", *data, &data->pad);
}

Status ApplyGenerationConfig(const json::object& root, TokenizerData* data) {
  const json::value* ids = Get(root, "eos_token_id");
  if (ids == nullptr) return {};
  const auto add = [&](const json::value& value) -> Status {
    VIVACE_ASSIGN(const TokenId id, AsTokenId(value, "eos_token_id"));
    if (static_cast<size_t>(id) < data->tokens.size()) data->end_of_turn.push_back(id);
    return {};
  };
  if (!ids->is_array()) return add(*ids);
  for (const json::value& value : ids->get_array()) VIVACE_RETURN_IF_ERROR(add(value));
  return {};
}

}  // namespace vivace
