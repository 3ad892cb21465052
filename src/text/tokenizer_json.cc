#include "text/tokenizer_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <unordered_map>

#include "base/limits.h"
#include "text/tokenizer_json_reader.h"

namespace vivace {
namespace {

using namespace tokenizer_json;  // NOLINT: the reader's own parts

class Reader {
 public:
  explicit Reader(const json::object& root) : root_(root) {}

  Result<TokenizerData> Read() {
    VIVACE_ASSIGN(const json::object* model, GetObject(root_, "model"));
    if (model == nullptr) {
      return Fail(ErrorCode::kCorruptData, "missing_key", "model", "the file has no 'model'");
    }
    VIVACE_RETURN_IF_ERROR(ReadModel(*model));
    VIVACE_RETURN_IF_ERROR(ReadAddedTokens());
    VIVACE_RETURN_IF_ERROR(ReadUnknown(*model));
    VIVACE_ASSIGN(data_.normalizer, ReadNormalizer(root_));
    VIVACE_ASSIGN(data_.cutter, ReadCutter(root_));
    VIVACE_ASSIGN(data_.decoder, ReadDecoder(root_));
    VIVACE_RETURN_IF_ERROR(ReadPostProcessor(root_, &data_));
    data_.scores.resize(data_.scores.empty() ? 0 : data_.tokens.size());
    return std::move(data_);
  }

 private:
  Status ReadModel(const json::object& model) {
    VIVACE_ASSIGN(std::string_view type, TypeOf(model));
    // Old files name no type; only BPE ones have merges.
    if (type.empty() && Get(model, "merges") != nullptr) type = "BPE";
    if (type == "BPE") return ReadBpe(model);
    if (type == "Unigram") return ReadUnigram(model);
    if (type != "WordPiece" && type != "WordLevel") {
      return Unsupported("unknown_tokenizer", "model", type);
    }
    data_.model =
        type == "WordPiece" ? TokenizerData::Model::kWordPiece : TokenizerData::Model::kWordLevel;
    VIVACE_ASSIGN(data_.continuing_prefix, GetString(model, "continuing_subword_prefix"));
    VIVACE_ASSIGN(data_.max_word_characters,
                  GetSize(model, "max_input_chars_per_word", 100, limits::kMaxTokenizerJsonBytes));
    return ReadVocabulary(model);
  }

  Status ReadBpe(const json::object& model) {
    VIVACE_ASSIGN(data_.continuing_prefix, GetString(model, "continuing_subword_prefix"));
    VIVACE_ASSIGN(data_.word_suffix, GetString(model, "end_of_word_suffix"));
    VIVACE_ASSIGN(data_.byte_fallback, GetBool(model, "byte_fallback", false));
    if (data_.byte_fallback && !(data_.continuing_prefix.empty() && data_.word_suffix.empty())) {
      return Unsupported("unknown_tokenizer", "byte_fallback", "with a subword prefix or suffix");
    }
    const json::value* dropout = Get(model, "dropout");
    if (dropout != nullptr && !(dropout->is_number() && dropout->to_number<double>() == 0.0)) {
      return Unsupported("unknown_tokenizer", "dropout", json::serialize(*dropout));
    }
    VIVACE_ASSIGN(data_.ignore_merges, GetBool(model, "ignore_merges", false));
    VIVACE_ASSIGN(data_.fuse_unknown, GetBool(model, "fuse_unk", false));
    VIVACE_RETURN_IF_ERROR(ReadVocabulary(model));
    return ReadMerges(model);
  }

  // The vocabulary is a list of [token, score]; the index is the id.
  Status ReadUnigram(const json::object& model) {
    data_.model = TokenizerData::Model::kUnigram;
    VIVACE_ASSIGN(data_.byte_fallback, GetBool(model, "byte_fallback", false));
    VIVACE_ASSIGN(const json::array* vocabulary, GetArray(model, "vocab"));
    if (vocabulary->size() > limits::kMaxVocab) {
      return Fail(ErrorCode::kCorruptData, "token_id_range", "vocab",
                  "{} tokens are more than the {} supported", vocabulary->size(),
                  limits::kMaxVocab);
    }
    for (const json::value& item : *vocabulary) {
      const json::array* pair = item.if_array();
      if (pair == nullptr || pair->size() != 2 || !pair->at(0).is_string() ||
          !pair->at(1).is_number()) {
        return WrongType("vocab", "an array of pairs of a token and its score");
      }
      const auto id = static_cast<TokenId>(data_.scores.size());
      data_.scores.push_back(pair->at(1).to_number<double>());
      VIVACE_RETURN_IF_ERROR(Place(id, pair->at(0).get_string(), TokenType::kNormal));
    }
    if (Get(model, "unk_id") == nullptr) return {};
    VIVACE_ASSIGN(const size_t unknown, GetSize(model, "unk_id", 0, limits::kMaxVocab));
    data_.unknown = static_cast<TokenId>(unknown);
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
      const bool in_model = ids_.contains(content);
      VIVACE_RETURN_IF_ERROR(
          Place(id, content, special ? TokenType::kControl : TokenType::kUserDefined));
      AddedTokenFlags flags{.id = id};
      flags.in_model = in_model;
      VIVACE_ASSIGN(flags.single_word, GetBool(token, "single_word", false));
      VIVACE_ASSIGN(flags.lstrip, GetBool(token, "lstrip", false));
      VIVACE_ASSIGN(flags.rstrip, GetBool(token, "rstrip", false));
      VIVACE_ASSIGN(flags.normalized, GetBool(token, "normalized", !special));
      data_.flags.push_back(flags);
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
    if (token.empty()) return {};  // or a unigram model, which has it by id
    const auto found = ids_.find(token);
    if (found == ids_.end()) {
      return Fail(ErrorCode::kCorruptData, "token_id_range", "unk_token",
                  "unk_token '{}' is not in the vocabulary", Printable(token));
    }
    data_.unknown = found->second;
    return {};
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
