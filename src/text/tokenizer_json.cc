#include "text/tokenizer_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <span>
#include <unordered_map>

#include "base/limits.h"
#include "formats/untrusted.h"
#include "text/regex_syntax.h"

namespace vivace {
namespace {

namespace json = boost::json;
using formats::Printable;

tl::unexpected<Error> WrongType(std::string_view field, std::string_view wanted) {
  return Fail(ErrorCode::kCorruptData, "wrong_type", std::string(field), "'{}' is not {}", field,
              wanted);
}

tl::unexpected<Error> Unsupported(std::string_view reason, std::string_view field,
                                  std::string_view name) {
  return Fail(ErrorCode::kUnsupported, std::string(reason), std::string(field),
              "{} '{}' is not supported", field, Printable(name));
}

// Null stands for absent everywhere in these files.
const json::value* Get(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<const json::object*> GetObject(const json::object& object, std::string_view key) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return WrongType(key, "an object");
  return &value->get_object();
}

Result<const json::array*> GetArray(const json::object& object, std::string_view key) {
  static const json::array empty;
  const json::value* value = Get(object, key);
  if (value == nullptr) return &empty;
  if (!value->is_array()) return WrongType(key, "an array");
  return &value->get_array();
}

Result<std::string_view> GetString(const json::object& object, std::string_view key) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return std::string_view();
  if (!value->is_string()) return WrongType(key, "a string");
  return std::string_view(value->get_string());
}

Result<bool> GetBool(const json::object& object, std::string_view key, bool fallback) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return WrongType(key, "true or false");
  return value->get_bool();
}

Result<TokenId> AsTokenId(const json::value& value, std::string_view token) {
  if (!value.is_number()) return WrongType("id", "a number");
  const int64_t* id = value.if_int64();
  if (id == nullptr || *id < 0 || *id >= limits::kMaxVocab) {
    return Fail(ErrorCode::kCorruptData, "token_id_range", "id",
                "the id of '{}' is not a whole number from 0 to {}", Printable(token),
                limits::kMaxVocab - 1);
  }
  return static_cast<TokenId>(*id);
}

// The steps of a part that is one step, a Sequence of steps (`list` names its member), or null.
Result<std::vector<const json::object*>> Steps(const json::object& root, std::string_view part,
                                               std::string_view list) {
  std::vector<const json::object*> steps;
  VIVACE_ASSIGN(const json::object* only, GetObject(root, part));
  if (only == nullptr) return steps;
  VIVACE_ASSIGN(const std::string_view type, GetString(*only, "type"));
  if (type != "Sequence") {
    steps.push_back(only);
    return steps;
  }
  VIVACE_ASSIGN(const json::array* items, GetArray(*only, list));
  for (const json::value& item : *items) {
    if (!item.is_object()) return WrongType(list, "an array of objects");
    steps.push_back(&item.get_object());
  }
  return steps;
}

class Reader {
 public:
  explicit Reader(const json::object& root) : root_(root) {}

  Result<TokenizerData> Read() {
    VIVACE_ASSIGN(const json::object* model, GetObject(root_, "model"));
    if (model == nullptr) {
      return Fail(ErrorCode::kCorruptData, "missing_key", "model", "the file has no 'model'");
    }
    VIVACE_RETURN_IF_ERROR(CheckModel(*model));
    VIVACE_RETURN_IF_ERROR(ReadVocabulary(*model));
    VIVACE_RETURN_IF_ERROR(ReadAddedTokens());
    VIVACE_RETURN_IF_ERROR(ReadMerges(*model));
    VIVACE_RETURN_IF_ERROR(ReadUnknown(*model));
    VIVACE_RETURN_IF_ERROR(ReadNormalizer());
    VIVACE_RETURN_IF_ERROR(ReadPretokenizer());
    VIVACE_RETURN_IF_ERROR(CheckDecoder());
    VIVACE_RETURN_IF_ERROR(ReadPostProcessor());
    return std::move(data_);
  }

 private:
  Status CheckModel(const json::object& model) {
    VIVACE_ASSIGN(const std::string_view type, GetString(model, "type"));
    // Old files name no type; only BPE ones have merges.
    const bool old_bpe = type.empty() && Get(model, "merges") != nullptr;
    if (type != "BPE" && !old_bpe) return Unsupported("unknown_tokenizer", "model", type);
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      VIVACE_ASSIGN(const std::string_view value, GetString(model, key));
      if (!value.empty()) return Unsupported("unknown_tokenizer", key, value);
    }
    VIVACE_ASSIGN(const bool byte_fallback, GetBool(model, "byte_fallback", false));
    if (byte_fallback) return Unsupported("unknown_tokenizer", "byte_fallback", "true");
    const json::value* dropout = Get(model, "dropout");
    if (dropout != nullptr && !(dropout->is_number() && dropout->to_number<double>() == 0.0)) {
      return Unsupported("unknown_tokenizer", "dropout", json::serialize(*dropout));
    }
    VIVACE_ASSIGN(data_.ignore_merges, GetBool(model, "ignore_merges", false));
    VIVACE_ASSIGN(data_.fuse_unknown, GetBool(model, "fuse_unk", false));
    return {};
  }

  // Gives `id` to `token`; an id has one token, a token one id.
  Status Place(TokenId id, std::string_view token, TokenType type) {
    const auto index = static_cast<size_t>(id);
    if (index >= data_.tokens.size()) {
      data_.tokens.resize(index + 1);
      data_.types.resize(index + 1, TokenType::kUnused);
    }
    const auto known = ids_.find(token);
    const bool free = data_.tokens[index].empty() && known == ids_.end();
    const bool same = known != ids_.end() && known->second == id;
    if (!free && !same) {
      return Fail(ErrorCode::kCorruptData, "duplicate_token_id", "id",
                  "'{}' cannot have id {}: the id or the text belongs to another", Printable(token),
                  id);
    }
    data_.tokens[index] = token;
    data_.types[index] = type;
    ids_.emplace(token, id);
    return {};
  }

  Status ReadVocabulary(const json::object& model) {
    VIVACE_ASSIGN(const json::object* vocabulary, GetObject(model, "vocab"));
    if (vocabulary == nullptr) return WrongType("vocab", "an object");
    data_.tokens.reserve(std::min<size_t>(vocabulary->size(), limits::kMaxVocab));
    ids_.reserve(vocabulary->size());
    for (const auto& [token, value] : *vocabulary) {
      VIVACE_ASSIGN(const TokenId id, AsTokenId(value, token));
      VIVACE_RETURN_IF_ERROR(Place(id, token, TokenType::kNormal));
    }
    return {};
  }

  Status ReadAddedTokens() {
    VIVACE_ASSIGN(const json::array* added, GetArray(root_, "added_tokens"));
    for (const json::value& item : *added) {
      if (!item.is_object()) return WrongType("added_tokens", "an array of objects");
      const json::object& token = item.get_object();
      VIVACE_ASSIGN(const std::string_view content, GetString(token, "content"));
      if (content.empty()) return WrongType("content", "a string with something in it");
      const json::value* id_value = Get(token, "id");
      if (id_value == nullptr) return WrongType("id", "a number");
      VIVACE_ASSIGN(const TokenId id, AsTokenId(*id_value, content));
      VIVACE_ASSIGN(const bool special, GetBool(token, "special", false));
      VIVACE_RETURN_IF_ERROR(
          Place(id, content, special ? TokenType::kControl : TokenType::kUserDefined));
      VIVACE_ASSIGN(const bool single_word, GetBool(token, "single_word", false));
      if (single_word) return Unsupported("unknown_tokenizer", "single_word token", content);
      AddedTokenFlags flags = {.id = id};
      VIVACE_ASSIGN(flags.lstrip, GetBool(token, "lstrip", false));
      VIVACE_ASSIGN(flags.rstrip, GetBool(token, "rstrip", false));
      VIVACE_ASSIGN(flags.normalized, GetBool(token, "normalized", !special));
      if (flags.lstrip || flags.rstrip || flags.normalized) data_.flags.push_back(flags);
    }
    return {};
  }

  Status ReadMerges(const json::object& model) {
    VIVACE_ASSIGN(const json::array* merges, GetArray(model, "merges"));
    data_.merges.reserve(std::min(merges->size(), limits::kMaxMerges));
    for (const json::value& item : *merges) {
      const size_t rank = data_.merges.size();
      if (const json::string* line = item.if_string()) {
        VIVACE_ASSIGN(auto merge, ParseMerge(*line, rank));
        data_.merges.push_back(std::move(merge));
        continue;
      }
      const json::array* pair = item.if_array();
      if (pair == nullptr || pair->size() != 2 || !pair->at(0).is_string() ||
          !pair->at(1).is_string()) {
        return Fail(ErrorCode::kCorruptData, "bad_merge", "merges",
                    "merge {} is not a pair of strings", rank);
      }
      data_.merges.push_back(
          {std::string(pair->at(0).get_string()), std::string(pair->at(1).get_string())});
    }
    return {};
  }

  Status ReadUnknown(const json::object& model) {
    VIVACE_ASSIGN(const std::string_view token, GetString(model, "unk_token"));
    if (token.empty()) return {};
    const auto found = ids_.find(token);
    if (found == ids_.end()) {
      return Fail(ErrorCode::kCorruptData, "token_id_range", "unk_token",
                  "unk_token '{}' is not in the vocabulary", Printable(token));
    }
    data_.unknown = found->second;
    return {};
  }

  Status ReadNormalizer() {
    VIVACE_ASSIGN(const auto steps, Steps(root_, "normalizer", "normalizers"));
    for (const json::object* step : steps) {
      VIVACE_ASSIGN(const std::string_view type, GetString(*step, "type"));
      if (type != "NFC") return Unsupported("unknown_normalizer", "normalizer", type);
      data_.normalizer = TokenizerData::Normalizer::kNfc;
    }
    return {};
  }

  // One of: ByteLevel; Split by a known pattern, ByteLevel; Digits one by one, ByteLevel.
  Status ReadPretokenizer() {
    VIVACE_ASSIGN(const auto steps, Steps(root_, "pre_tokenizer", "pretokenizers"));
    std::optional<Pretokenizer> from_split;
    bool digits = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      VIVACE_ASSIGN(const std::string_view type, GetString(*steps[i], "type"));
      const bool last = i + 1 == steps.size();
      if (type == "Split" && i == 0) {
        VIVACE_ASSIGN(from_split, ReadSplit(*steps[i]));
      } else if (type == "Digits" && i == 0) {
        VIVACE_ASSIGN(digits, GetBool(*steps[i], "individual_digits", false));
        if (!digits) return Unsupported("unknown_pretokenizer", "pre_tokenizer", "Digits by runs");
      } else if (type == "ByteLevel" && last) {
        return ReadByteLevel(*steps[i], from_split, digits);
      } else {
        return Unsupported("unknown_pretokenizer", "pre_tokenizer", type);
      }
    }
    return Unsupported("unknown_pretokenizer", "pre_tokenizer", "without ByteLevel");
  }

  static Result<std::optional<Pretokenizer>> ReadSplit(const json::object& split) {
    VIVACE_ASSIGN(const json::object* pattern, GetObject(split, "pattern"));
    if (pattern == nullptr || Get(*pattern, "Regex") == nullptr) {
      return Unsupported("unknown_pretokenizer", "pre_tokenizer", "Split by a string");
    }
    VIVACE_ASSIGN(const std::string_view regex, GetString(*pattern, "Regex"));
    VIVACE_ASSIGN(const std::string_view behavior, GetString(split, "behavior"));
    VIVACE_ASSIGN(const bool invert, GetBool(split, "invert", false));
    const auto kind = PretokenizerByPattern(regex);
    if (!kind) {
      VIVACE_RETURN_IF_ERROR(CheckRegex(regex));
      return Unsupported("unknown_pretokenizer", "pattern", regex);
    }
    // The known patterns match everywhere, so keeping only the matches keeps all.
    const bool isolated = behavior == "Isolated" && !invert;
    const bool matches = behavior == "Removed" && invert;
    if (!isolated && !matches) {
      return Unsupported("unknown_pretokenizer", "Split behavior", behavior);
    }
    return kind;
  }

  Status ReadByteLevel(const json::object& step, std::optional<Pretokenizer> from_split,
                       bool digits) {
    VIVACE_ASSIGN(const bool use_regex, GetBool(step, "use_regex", true));
    VIVACE_ASSIGN(data_.add_space_prefix, GetBool(step, "add_prefix_space", true));
    const bool alone = !from_split && !digits;
    if (use_regex == from_split.has_value()) {
      return Unsupported("unknown_pretokenizer", "ByteLevel use_regex",
                         use_regex ? "true" : "false");
    }
    if (data_.add_space_prefix && !alone) {
      return Unsupported("unknown_pretokenizer", "ByteLevel add_prefix_space", "true");
    }
    data_.pretokenizer = from_split.value_or(digits ? Pretokenizer::kSmolLm : Pretokenizer::kGpt2);
    return {};
  }

  Status CheckDecoder() {
    VIVACE_ASSIGN(const auto steps, Steps(root_, "decoder", "decoders"));
    if (steps.empty()) return Unsupported("unknown_decoder", "decoder", "null");
    for (const json::object* step : steps) {
      VIVACE_ASSIGN(const std::string_view type, GetString(*step, "type"));
      if (type != "ByteLevel") return Unsupported("unknown_decoder", "decoder", type);
    }
    return {};
  }

  Status ReadPostProcessor() {
    VIVACE_ASSIGN(const auto steps, Steps(root_, "post_processor", "processors"));
    bool templated = false;
    for (const json::object* step : steps) {
      VIVACE_ASSIGN(const std::string_view type, GetString(*step, "type"));
      if (type == "ByteLevel") continue;  // changes offsets, not ids
      if (type != "TemplateProcessing" || templated) {
        return Unsupported("unknown_post_processor", "post_processor", type);
      }
      templated = true;
      VIVACE_RETURN_IF_ERROR(ReadTemplate(*step));
    }
    return {};
  }

  // "single": at most one special token, the text, at most one special token.
  Status ReadTemplate(const json::object& step) {
    VIVACE_ASSIGN(const json::array* single, GetArray(step, "single"));
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
      VIVACE_ASSIGN(const TokenId id, TemplateToken(step, name));
      std::optional<TokenId>& place = text_seen ? data_.eos : data_.bos;
      if (place) return Unsupported("unknown_post_processor", "second template token", name);
      place = id;
      (text_seen ? data_.add_eos : data_.add_bos) = true;
    }
    if (!text_seen) return Unsupported("unknown_post_processor", "template", "without the text");
    return {};
  }

  static Result<TokenId> TemplateToken(const json::object& step, std::string_view name) {
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
    if (ids->size() != 1) {
      return Unsupported("unknown_post_processor", "template token of several ids", name);
    }
    return AsTokenId(ids->at(0), name);
  }

  const json::object& root_;
  TokenizerData data_;
  std::unordered_map<std::string_view, TokenId> ids_;  // views into the document
};

}  // namespace

Result<TokenizerData> TokenizerFromJson(std::string_view text) {
  if (text.size() > limits::kMaxTokenizerJsonBytes) {
    return Fail(ErrorCode::kUnsupported, "file_too_large", "", "{} bytes are more than the {} read",
                text.size(), limits::kMaxTokenizerJsonBytes);
  }
  json::monotonic_resource memory;
  json::parse_options options;
  options.max_depth = limits::kJsonDepth;
  boost::system::error_code error;
  const json::value root = json::parse(text, error, &memory, options);
  if (error) {
    return Fail(ErrorCode::kCorruptData, "bad_json", "", "not valid JSON: {}", error.message());
  }
  if (!root.is_object()) {
    return Fail(ErrorCode::kCorruptData, "bad_json", "", "not a JSON object");
  }
  return Reader(root.get_object()).Read();
}

}  // namespace vivace
