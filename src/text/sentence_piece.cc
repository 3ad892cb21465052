#include "text/sentence_piece.h"

#include <utility>

#include "base/limits.h"
#include "text/protobuf_reader.h"

namespace vivace::sentence_piece {
namespace {

constexpr std::string_view kSpace = "\u2581";

enum class ModelType : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kCharacter = 4 };

// The members of the file's messages that matter, by their field numbers.
struct Model {
  uint64_t type = static_cast<uint64_t>(ModelType::kUnigram);
  bool byte_fallback = false;
  bool whitespace_suffix = false;
  bool dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_whitespaces = true;
  std::string_view charsmap;
  int64_t unknown = 0, bos = 1, eos = 2, pad = -1;
};

tl::unexpected<Error> Unsupported(std::string_view what) {
  return Fail(ErrorCode::kUnsupported, "unknown_tokenizer", "tokenizer.model",
              "a SentencePiece model {} is not supported", what);
}

Status ReadPiece(std::string_view message, TokenizerData* data) {
  if (data->tokens.size() >= limits::kMaxVocab) {
    return Fail(ErrorCode::kCorruptData, "token_id_range", "pieces",
                "more than {} tokens are not supported", limits::kMaxVocab);
  }
  std::string_view piece;
  float score = 0;
  uint64_t type = 1;
  ProtobufReader reader(message);
  while (!reader.AtEnd()) {
    VIVACE_ASSIGN(const ProtobufField field, reader.Next());
    if (field.number == 1) piece = field.bytes;
    if (field.number == 2) score = field.AsFloat();
    if (field.number == 3) type = field.value;
  }
  if (type < 1 || type > 6) {
    return Fail(ErrorCode::kCorruptData, "bad_token_type", "pieces",
                "token {} has type {}, which is not one of 1 to 6", data->tokens.size(), type);
  }
  data->tokens.emplace_back(piece);
  data->scores.push_back(score);
  data->types.push_back(static_cast<TokenType>(type));
  return {};
}

Status ReadTrainer(std::string_view message, Model* model) {
  ProtobufReader reader(message);
  while (!reader.AtEnd()) {
    VIVACE_ASSIGN(const ProtobufField field, reader.Next());
    switch (field.number) {
      case 3:
        model->type = field.value;
        break;
      case 24:
        model->whitespace_suffix = field.value != 0;
        break;
      case 35:
        model->byte_fallback = field.value != 0;
        break;
      case 40:
        model->unknown = static_cast<int32_t>(field.value);
        break;
      case 41:
        model->bos = static_cast<int32_t>(field.value);
        break;
      case 42:
        model->eos = static_cast<int32_t>(field.value);
        break;
      case 43:
        model->pad = static_cast<int32_t>(field.value);
        break;
      default:
        break;
    }
  }
  return {};
}

Status ReadNormalizerSpec(std::string_view message, Model* model) {
  ProtobufReader reader(message);
  while (!reader.AtEnd()) {
    VIVACE_ASSIGN(const ProtobufField field, reader.Next());
    if (field.number == 2) model->charsmap = field.bytes;
    if (field.number == 3) model->dummy_prefix = field.value != 0;
    if (field.number == 4) model->remove_extra_spaces = field.value != 0;
    if (field.number == 5) model->escape_whitespaces = field.value != 0;
  }
  return {};
}

// SentencePiece's user-defined pieces are pieces too: merges may make them.
void KeepUserDefined(TokenizerData* data) {
  for (size_t id = 0; id < data->types.size(); ++id) {
    if (data->types[id] != TokenType::kUserDefined) continue;
    AddedTokenFlags flags{.id = static_cast<TokenId>(id)};
    flags.in_model = true;
    data->flags.push_back(flags);
  }
}

}  // namespace

void SetUpBpe(bool prefix, TokenizerData* data) {
  KeepUserDefined(data);
  data->model = TokenizerData::Model::kBpe;
  data->merge_by_score = true;
  data->byte_fallback = true;
  data->fuse_unknown = true;
  data->normalizer.clear();
  if (prefix) data->normalizer.emplace_back(normalize::Prepend{std::string(kSpace)});
  data->normalizer.emplace_back(
      normalize::Replace{TextPattern(std::string(" ")), std::string(kSpace)});
  data->cutter.clear();
  data->decoder = {decode::Replace{TextPattern(std::string(kSpace)), " "}, decode::ByteFallback{},
                   decode::Fuse{}};
  if (prefix) data->decoder.emplace_back(decode::Strip{" ", 1, 0});
}

Status SetUpUnigram(const UnigramOptions& options, TokenizerData* data) {
  KeepUserDefined(data);
  data->model = TokenizerData::Model::kUnigram;
  data->byte_fallback = options.byte_fallback;
  data->normalizer.clear();
  if (!options.charsmap.empty()) {
    VIVACE_ASSIGN(Charsmap map, Charsmap::Parse(options.charsmap));
    data->normalizer.emplace_back(std::make_shared<const Charsmap>(std::move(map)));
  }
  if (options.remove_extra_spaces) {
    VIVACE_ASSIGN(auto runs, Regex::Compile(" {2,}"));
    data->normalizer.emplace_back(normalize::Strip{false, true});
    data->normalizer.emplace_back(
        normalize::Replace{TextPattern(std::move(runs)), std::string(kSpace)});
  }
  const auto prepend = options.dummy_prefix ? cut::Prepend::kAlways : cut::Prepend::kNever;
  data->cutter = {cut::Metaspace{std::string(kSpace), prepend, true}};
  data->decoder.clear();
  if (options.byte_fallback) data->decoder.emplace_back(decode::ByteFallback{});
  data->decoder.emplace_back(decode::Metaspace{std::string(kSpace), options.dummy_prefix});
  return {};
}

Result<TokenizerData> ReadModel(std::string_view bytes) {
  TokenizerData data;
  Model model;
  ProtobufReader reader(bytes);
  while (!reader.AtEnd()) {
    VIVACE_ASSIGN(const ProtobufField field, reader.Next());
    if (field.number == 1) VIVACE_RETURN_IF_ERROR(ReadPiece(field.bytes, &data));
    if (field.number == 2) VIVACE_RETURN_IF_ERROR(ReadTrainer(field.bytes, &model));
    if (field.number == 3) VIVACE_RETURN_IF_ERROR(ReadNormalizerSpec(field.bytes, &model));
  }
  if (model.whitespace_suffix) return Unsupported("with spaces as suffixes");
  if (!model.escape_whitespaces) return Unsupported("that does not escape spaces");
  const auto id = [&](int64_t number) -> std::optional<TokenId> {
    const bool exists = number >= 0 && static_cast<uint64_t>(number) < data.tokens.size();
    return exists ? std::optional(static_cast<TokenId>(number)) : std::nullopt;
  };
  data.unknown = id(model.unknown);
  data.bos = id(model.bos);
  data.eos = id(model.eos);
  data.pad = id(model.pad);
  switch (static_cast<ModelType>(model.type)) {
    case ModelType::kBpe:
      if (!model.charsmap.empty()) return Unsupported("of BPE with a normalisation map");
      SetUpBpe(model.dummy_prefix, &data);
      if (model.remove_extra_spaces) {
        VIVACE_ASSIGN(auto runs, Regex::Compile(" {2,}"));
        data.normalizer.insert(
            data.normalizer.begin(),
            {normalize::Strip{}, normalize::Replace{TextPattern(std::move(runs)), " "}});
      }
      data.byte_fallback = model.byte_fallback;
      data.add_bos = data.bos.has_value();
      return data;
    case ModelType::kUnigram:
      VIVACE_RETURN_IF_ERROR(SetUpUnigram(
          {model.charsmap, model.dummy_prefix, model.remove_extra_spaces, model.byte_fallback},
          &data));
      data.add_eos = data.eos.has_value();
      return data;
    default:
      return Unsupported("of words or of characters");
  }
}

}  // namespace vivace::sentence_piece
