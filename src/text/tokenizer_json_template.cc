// The post-processors of a tokenizer.json, as far as they say what stands around one text.
#include "text/tokenizer_json_reader.h"

namespace vivace::tokenizer_json {
namespace {

Status CheckCount(const std::vector<TokenId>& ids) {
  if (ids.size() <= limits::kMaxTemplateTokens) return {};
  return Unsupported("unknown_post_processor", "template", "of very many tokens");
}

Status AddTemplateToken(const json::object& step, std::string_view name,
                        std::vector<TokenId>* out) {
  VIVACE_ASSIGN(const json::object* specials, GetObject(step, "special_tokens"));
  const json::object* entry = nullptr;
  if (specials != nullptr) {
    VIVACE_ASSIGN(entry, GetObject(*specials, name));
  }
  if (entry == nullptr) {
    return Fail(ErrorCode::kCorruptData, "missing_key", "special_tokens",
                "the template uses '{}', which special_tokens does not have", Printable(name));
  }
  VIVACE_ASSIGN(const json::array* ids, GetArray(*entry, "ids"));
  for (const json::value& value : *ids) {
    VIVACE_ASSIGN(const TokenId id, AsTokenId(value, name));
    out->push_back(id);
    VIVACE_RETURN_IF_ERROR(CheckCount(*out));
  }
  return {};
}

// What one post-processor puts before and behind the text.
struct Around {
  std::vector<TokenId> before, behind;
};

Result<Around> ReadTemplate(const json::object& step) {
  VIVACE_ASSIGN(const json::array* single, GetArray(step, "single"));
  Around around;
  bool text_seen = false;
  for (const json::value& value : *single) {
    if (!value.is_object()) return WrongType("single", "an array of objects");
    const json::object& item = value.get_object();
    if (Get(item, "Sequence") != nullptr && !text_seen) {
      text_seen = true;
      continue;
    }
    VIVACE_ASSIGN(const json::object* special, GetObject(item, "SpecialToken"));
    if (special == nullptr) return Unsupported("unknown_post_processor", "template", "two texts");
    VIVACE_ASSIGN(const std::string_view name, GetString(*special, "id"));
    VIVACE_RETURN_IF_ERROR(
        AddTemplateToken(step, name, text_seen ? &around.behind : &around.before));
  }
  if (!text_seen) return Unsupported("unknown_post_processor", "template", "without the text");
  return around;
}

Result<TokenId> PairedId(const json::object& step, std::string_view key) {
  VIVACE_ASSIGN(const json::array* pair, GetArray(step, key));
  if (pair->size() != 2 || !pair->at(0).is_string()) {
    return WrongType(key, "a pair of a token and its id");
  }
  return AsTokenId(pair->at(1), pair->at(0).get_string());
}

// "cls" before, "sep" behind.
Result<Around> ReadPaired(const json::object& step) {
  VIVACE_ASSIGN(const TokenId cls, PairedId(step, "cls"));
  VIVACE_ASSIGN(const TokenId sep, PairedId(step, "sep"));
  return Around{{cls}, {sep}};
}

}  // namespace

Status ReadPostProcessor(const json::object& root, TokenizerData* data) {
  VIVACE_ASSIGN(const auto steps, Steps(root, "post_processor", "processors"));
  for (const json::object* step : steps) {
    VIVACE_ASSIGN(const std::string_view type, TypeOf(*step));
    if (type == "ByteLevel") continue;  // changes offsets, not ids
    Around around;
    if (type == "TemplateProcessing") {
      VIVACE_ASSIGN(around, ReadTemplate(*step));
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      VIVACE_ASSIGN(around, ReadPaired(*step));
    } else {
      return Unsupported("unknown_post_processor", "post_processor", type);
    }
    data->prefix.insert(data->prefix.begin(), around.before.begin(), around.before.end());
    data->suffix.insert(data->suffix.end(), around.behind.begin(), around.behind.end());
    VIVACE_RETURN_IF_ERROR(CheckCount(data->prefix));
    VIVACE_RETURN_IF_ERROR(CheckCount(data->suffix));
  }
  if (data->prefix.size() == 1) data->bos = data->prefix[0];
  if (data->suffix.size() == 1) data->eos = data->suffix[0];
  data->add_bos = data->prefix.size() == 1;
  data->add_eos = data->suffix.size() == 1;
  return {};
}

}  // namespace vivace::tokenizer_json
