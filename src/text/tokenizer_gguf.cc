#include "text/tokenizer_gguf.h"

#include <algorithm>
#include <iterator>

#include "base/limits.h"
#include "formats/untrusted.h"

namespace vivace {
namespace {

using formats::GgufFile;

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// What a pre-tokenizer name implies besides its pattern, as in the Hugging Face files of its
// models.
struct Family {
  Pretokenizer kind;
  TokenizerData::Normalizer normalizer;
  bool ignore_merges;
  bool add_bos;  // when tokenizer.ggml.add_bos_token is not there
};
constexpr Family kFamilies[] = {
    {Pretokenizer::kGpt2, TokenizerData::Normalizer::kNone, false, false},
    {Pretokenizer::kSmolLm, TokenizerData::Normalizer::kNone, false, false},
    {Pretokenizer::kLlama3, TokenizerData::Normalizer::kNone, true, true},
    {Pretokenizer::kQwen2, TokenizerData::Normalizer::kNfc, false, false},
};

// Older files do not say which token ends a turn; these texts do.
constexpr std::string_view kEndOfTurnTexts[] = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>"};

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
  const auto kind = PretokenizerByName(name);
  if (!kind) {
    return file.Fault(ErrorCode::kUnsupported, "unknown_pretokenizer", kKey,
                      "pre-tokenizer '{}' is not supported", formats::Printable(name));
  }
  const Family& family = *std::ranges::find(kFamilies, *kind, &Family::kind);
  data->pretokenizer = *kind;
  data->normalizer = family.normalizer;
  data->ignore_merges = family.ignore_merges;
  VIVACE_ASSIGN(data->add_bos, file.GetBoolOr("tokenizer.ggml.add_bos_token", family.add_bos));
  VIVACE_ASSIGN(data->add_eos, file.GetBoolOr("tokenizer.ggml.add_eos_token", false));
  VIVACE_ASSIGN(const bool prefix, file.GetBoolOr("tokenizer.ggml.add_space_prefix", false));
  // Only GPT-2's own pre-tokenizer has such a prefix; files of the others carry stray values.
  data->add_space_prefix = prefix && *kind == Pretokenizer::kGpt2;
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

// tokenizer.ggml.unknown_token_id is left out on purpose: Hugging Face's byte-level models have no
// unknown token, and that key names a control token in them.
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

}  // namespace

Result<TokenizerData> TokenizerFromGguf(const GgufFile& file) {
  constexpr std::string_view kModelKey = "tokenizer.ggml.model";
  TokenizerData data;
  VIVACE_ASSIGN(const std::string_view model, file.GetString(kModelKey));
  // The tokens first: a broken vocabulary is told apart from one of a kind we do not have.
  VIVACE_RETURN_IF_ERROR(ReadTokens(file, &data));
  if (model != "gpt2") {
    return file.Fault(ErrorCode::kUnsupported, "unknown_tokenizer", kModelKey,
                      "tokenizer '{}' is not supported (byte-level BPE, 'gpt2', is)",
                      formats::Printable(model));
  }
  VIVACE_RETURN_IF_ERROR(ReadPretokenizer(file, &data));
  VIVACE_RETURN_IF_ERROR(ReadMerges(file, &data));
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
