#include "text/tokenizer_gguf.h"

#include <algorithm>
#include <iterator>

#include "base/limits.h"
#include "formats/untrusted.h"
#include "text/pretokenizer_names.h"
#include "text/sentence_piece.h"

namespace vivace {
namespace {

using formats::GgufFile;
using formats::GgufType;

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kAddBosKey = "tokenizer.ggml.add_bos_token";
constexpr std::string_view kAddEosKey = "tokenizer.ggml.add_eos_token";
constexpr std::string_view kAddPrefixKey = "tokenizer.ggml.add_space_prefix";

// Older files do not say which token ends a turn; these texts do.
constexpr std::string_view kEndOfTurnTexts[] = {"<|im_end|>",    "<|eot_id|>", "<|eom_id|>",
                                                "<end_of_turn>", "<|end|>",    "<|return|>"};

Status ReadTokens(const GgufFile& file, TokenizerData* data) {
  VIVACE_ASSIGN(const auto tokens, file.GetStrings(kTokensKey));
  if (tokens.empty()) {
    return file.Fault(ErrorCode::kCorruptData, "vocab_mismatch", kTokensKey,
                      "the vocabulary is empty");
  }
  if (tokens.size() > limits::kMaxVocab) {
    return file.Fault(ErrorCode::kCorruptData, "token_id_range", kTokensKey,
                      "{} tokens are more than the {} supported", tokens.size(), limits::kMaxVocab);
  }
  data->tokens.assign(tokens.begin(), tokens.end());
  if (!file.Has(kTypesKey)) return {};
  VIVACE_ASSIGN(const auto types, file.GetInts(kTypesKey));
  if (types.size() != tokens.size()) {
    return file.Fault(ErrorCode::kCorruptData, "vocab_mismatch", kTypesKey,
                      "{} tokens but {} token types", tokens.size(), types.size());
  }
  data->types.reserve(types.size());
  for (size_t id = 0; id < types.size(); ++id) {
    const int32_t type = types[id];
    if (type < static_cast<int32_t>(TokenType::kNormal) ||
        type > static_cast<int32_t>(TokenType::kByte)) {
      return file.Fault(ErrorCode::kCorruptData, "bad_token_type", kTypesKey,
                        "token {} has type {}, which is not one of 1 to 6", id, type);
    }
    data->types.push_back(static_cast<TokenType>(type));
    if (data->types.back() == TokenType::kByte && !ParseByteToken(data->tokens[id])) {
      return file.Fault(ErrorCode::kCorruptData, "bad_byte_token", kTokensKey,
                        "byte token {} is written '{}', not <0xNN>", id,
                        formats::Printable(data->tokens[id], 32));
    }
  }
  return {};
}

Status ReadMerges(const GgufFile& file, TokenizerData* data) {
  VIVACE_ASSIGN(const auto merges, file.GetStrings(kMergesKey));
  if (merges.size() > limits::kMaxMerges) {
    return file.Fault(ErrorCode::kCorruptData, "bad_merge", kMergesKey,
                      "{} merges are more than the {} supported", merges.size(),
                      limits::kMaxMerges);
  }
  data->merges.reserve(merges.size());
  for (const std::string_view line : merges) {
    auto merge = ParseMerge(line, data->merges.size());
    if (!merge) {
      return file.Fault(merge.error().code, merge.error().reason, kMergesKey, "{}",
                        merge.error().message);
    }
    data->merges.push_back(std::move(*merge));
  }
  return {};
}

Status ReadPretokenizer(const GgufFile& file, TokenizerData* data) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  VIVACE_ASSIGN(const std::string_view name, file.GetStringOr(kKey, ""));
  VIVACE_ASSIGN(auto family, PretokenizerFamilyByName(name));
  if (!family) {
    return file.Fault(ErrorCode::kUnsupported, "unknown_pretokenizer", kKey,
                      "pre-tokenizer '{}' is not supported", formats::Printable(name));
  }
  data->cutter = std::move(family->cutter);
  data->normalizer = std::move(family->normalizer);
  data->ignore_merges = family->ignore_merges;
  VIVACE_ASSIGN(data->add_bos, file.GetBoolOr(kAddBosKey, family->add_bos));
  VIVACE_ASSIGN(data->add_eos, file.GetBoolOr(kAddEosKey, false));
  VIVACE_ASSIGN(const bool prefix, file.GetBoolOr(kAddPrefixKey, false));
  if (prefix && family->may_prefix_space) data->cutter = {cut::ByteLevel{true, true}};
  return {};
}

Result<std::optional<TokenId>> ReadId(const GgufFile& file, const TokenizerData& data,
                                      std::string_view name) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  if (!file.Has(key)) return std::optional<TokenId>();
  VIVACE_ASSIGN(const int64_t id, file.GetInt(key));
  if (id < 0 || static_cast<uint64_t>(id) >= data.tokens.size()) {
    return file.Fault(ErrorCode::kCorruptData, "token_id_range", key,
                      "token {} does not exist, the vocabulary has {}", id, data.tokens.size());
  }
  return std::optional<TokenId>(static_cast<TokenId>(id));
}

// tokenizer.ggml.unknown_token_id is read only by the models that have one: byte-level models of
// Hugging Face do not, and that key names a control token in them.
Status ReadIds(const GgufFile& file, TokenizerData* data) {
  VIVACE_ASSIGN(data->bos, ReadId(file, *data, "bos"));
  VIVACE_ASSIGN(data->eos, ReadId(file, *data, "eos"));
  VIVACE_ASSIGN(data->pad, ReadId(file, *data, "padding"));
  for (const std::string_view name : {"eot", "eom"}) {
    VIVACE_ASSIGN(const auto id, ReadId(file, *data, name));
    if (id) data->end_of_turn.push_back(*id);
  }
  for (size_t id = 0; id < data->types.size(); ++id) {
    if (data->types[id] != TokenType::kControl) continue;
    if (std::ranges::find(kEndOfTurnTexts, data->tokens[id]) != std::end(kEndOfTurnTexts)) {
      data->end_of_turn.push_back(static_cast<TokenId>(id));
    }
  }
  return {};
}

Status ReadScores(const GgufFile& file, TokenizerData* data) {
  VIVACE_ASSIGN(const auto scores, file.GetFloats(kScoresKey));
  if (scores.size() != data->tokens.size()) {
    return file.Fault(ErrorCode::kCorruptData, "vocab_mismatch", kScoresKey,
                      "{} tokens but {} scores", data->tokens.size(), scores.size());
  }
  for (size_t i = 0; i < scores.size(); ++i) data->scores.push_back(scores[i]);
  return {};
}

Status ReadUnknown(const GgufFile& file, TokenizerData* data) {
  VIVACE_ASSIGN(data->unknown, ReadId(file, *data, "unknown"));
  if (data->unknown) return {};
  const auto found = std::ranges::find(data->types, TokenType::kUnknown);
  if (found != data->types.end()) {
    data->unknown = static_cast<TokenId>(found - data->types.begin());
  }
  return {};
}

Status ReadByteLevel(const GgufFile& file, TokenizerData* data) {
  VIVACE_RETURN_IF_ERROR(ReadPretokenizer(file, data));
  return ReadMerges(file, data);
}

// SentencePiece's BPE, as llama.cpp runs it: a space before each stretch of text.
Status ReadSentencePiece(const GgufFile& file, TokenizerData* data) {
  VIVACE_RETURN_IF_ERROR(ReadScores(file, data));
  VIVACE_RETURN_IF_ERROR(ReadUnknown(file, data));
  VIVACE_ASSIGN(const bool prefix, file.GetBoolOr(kAddPrefixKey, true));
  const bool has_bos = file.Has("tokenizer.ggml.bos_token_id");
  VIVACE_ASSIGN(data->add_bos, file.GetBoolOr(kAddBosKey, has_bos));
  VIVACE_ASSIGN(data->add_eos, file.GetBoolOr(kAddEosKey, false));
  sentence_piece::SetUpBpe(prefix, data);
  return {};
}

Status ReadUnigram(const GgufFile& file, TokenizerData* data) {
  constexpr std::string_view kMapKey = "tokenizer.ggml.precompiled_charsmap";
  VIVACE_RETURN_IF_ERROR(ReadScores(file, data));
  VIVACE_RETURN_IF_ERROR(ReadUnknown(file, data));
  VIVACE_ASSIGN(data->add_bos, file.GetBoolOr(kAddBosKey, false));
  VIVACE_ASSIGN(data->add_eos, file.GetBoolOr(kAddEosKey, true));
  sentence_piece::UnigramOptions options;
  VIVACE_ASSIGN(options.dummy_prefix, file.GetBoolOr(kAddPrefixKey, true));
  VIVACE_ASSIGN(options.remove_extra_spaces,
                file.GetBoolOr("tokenizer.ggml.remove_extra_whitespaces", true));
  if (const formats::GgufEntry* map = file.Find(kMapKey)) {
    if (map->type != GgufType::kArray ||
        (map->item_type != GgufType::kU8 && map->item_type != GgufType::kI8)) {
      return file.Fault(ErrorCode::kCorruptData, "wrong_type", kMapKey, "not an array of bytes");
    }
    options.charsmap = {reinterpret_cast<const char*>(map->bytes.data()), map->bytes.size()};
  }
  return sentence_piece::SetUpUnigram(options, data);
}

// Word pieces are written as SentencePiece writes words: U+2581 before what begins one.
Status ReadWordPiece(const GgufFile& file, TokenizerData* data) {
  constexpr std::string_view kWordBegin = "\u2581";
  data->model = TokenizerData::Model::kWordPiece;
  data->continuing_prefix = "##";
  for (size_t id = 0; id < data->tokens.size(); ++id) {
    std::string& token = data->tokens[id];
    const bool plain = data->types.empty() || data->types[id] == TokenType::kNormal;
    if (token.starts_with(kWordBegin)) {
      token.erase(0, kWordBegin.size());
    } else if (plain && !token.empty() && !(token.starts_with('[') && token.ends_with(']'))) {
      token.insert(0, "##");
    }
  }
  VIVACE_RETURN_IF_ERROR(ReadUnknown(file, data));
  data->normalizer = {normalize::Bert{true, true, true, true}};
  data->cutter = BertCutter();
  data->decoder = {decode::WordPiece{}};
  // Files of some years have the classifier token as BOS. The key is misspelt in the format.
  VIVACE_ASSIGN(auto begin, ReadId(file, *data, "cls"));
  if (!begin) {
    VIVACE_ASSIGN(begin, ReadId(file, *data, "bos"));
  }
  VIVACE_ASSIGN(const auto end, ReadId(file, *data, "seperator"));
  if (begin) data->prefix = {*begin};
  if (end) data->suffix = {*end};
  return {};
}

struct ModelKind {
  std::string_view name;
  Status (*read)(const GgufFile& file, TokenizerData* data);
};
constexpr ModelKind kModels[] = {
    {"gpt2", ReadByteLevel},
    {"llama", ReadSentencePiece},
    {"t5", ReadUnigram},
    {"bert", ReadWordPiece},
};

}  // namespace

Result<TokenizerData> TokenizerFromGguf(const GgufFile& file) {
  constexpr std::string_view kModelKey = "tokenizer.ggml.model";
  TokenizerData data;
  VIVACE_ASSIGN(const std::string_view model, file.GetString(kModelKey));
  // The tokens first: a broken vocabulary is told apart from one of a kind we do not have.
  VIVACE_RETURN_IF_ERROR(ReadTokens(file, &data));
  const auto kind = std::ranges::find(kModels, model, &ModelKind::name);
  if (kind == std::end(kModels)) {
    return file.Fault(ErrorCode::kUnsupported, "unknown_tokenizer", kModelKey,
                      "tokenizer '{}' is not supported (gpt2, llama, t5 and bert are)",
                      formats::Printable(model));
  }
  VIVACE_RETURN_IF_ERROR(kind->read(file, &data));
  VIVACE_RETURN_IF_ERROR(ReadIds(file, &data));
  return data;
}

Result<std::shared_ptr<const Tokenizer>> TokenizerOf(const formats::GgufFile& file) {
  VIVACE_ASSIGN(TokenizerData data, TokenizerFromGguf(file));
  auto tokenizer = Tokenizer::Create(std::move(data));
  if (!tokenizer && !tokenizer.error().message.starts_with(file.path())) {
    tokenizer.error().message = fmt::format("{}: {}", file.path(), tokenizer.error().message);
  }
  return tokenizer;
}

}  // namespace vivace
