// Tokenizer::Create: checks what a file said and builds the indexes from it.
#include <algorithm>
#include <span>
#include <utility>

#include "base/limits.h"
#include "text/byte_alphabet.h"
#include "text/string_index.h"
#include "text/tokenizer.h"

namespace vivace {
namespace {

bool IsControl(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}
bool IsAdded(TokenType type) { return IsControl(type) || type == TokenType::kUserDefined; }

}  // namespace

class TokenizerBuilder {
 public:
  explicit TokenizerBuilder(TokenizerData data)
      : data_(std::move(data)), tokenizer_(new Tokenizer()) {}

  Result<std::shared_ptr<const Tokenizer>> Build() {
    VIVACE_RETURN_IF_ERROR(CheckSizes());
    VIVACE_RETURN_IF_ERROR(CheckIds());
    VIVACE_RETURN_IF_ERROR(IndexNames());
    tokenizer_->normalizer_ = Normalizer(std::move(data_.normalizer));
    tokenizer_->cutter_ = WordCutter(std::move(data_.cutter));
    tokenizer_->decoder_ = Decoder(std::move(data_.decoder));
    VIVACE_RETURN_IF_ERROR(CheckGrowth("normalizer", tokenizer_->normalizer_.MostGrowth()));
    VIVACE_RETURN_IF_ERROR(CheckGrowth("decoder", tokenizer_->decoder_.MostGrowth()));
    VIVACE_RETURN_IF_ERROR(BuildBytes());
    VIVACE_RETURN_IF_ERROR(BuildModel());
    VIVACE_RETURN_IF_ERROR(BuildAdded());
    Tokenizer& t = *tokenizer_;
    t.add_bos_ = data_.add_bos;
    t.add_eos_ = data_.add_eos;
    t.bos_ = data_.bos;
    t.eos_ = data_.eos;
    t.pad_ = data_.pad;
    t.prefix_ = std::move(data_.prefix);
    t.suffix_ = std::move(data_.suffix);
    if (t.prefix_.empty() && data_.add_bos) t.prefix_ = {*data_.bos};
    if (t.suffix_.empty() && data_.add_eos) t.suffix_ = {*data_.eos};
    if (data_.eos) t.eos_ids_.push_back(*data_.eos);
    for (const TokenId id : data_.end_of_turn) {
      if (std::ranges::find(t.eos_ids_, id) == t.eos_ids_.end()) t.eos_ids_.push_back(id);
    }
    return std::shared_ptr<const Tokenizer>(std::move(tokenizer_));
  }

 private:
  Status CheckSizes() {
    if (data_.tokens.empty()) {
      return Fail(ErrorCode::kCorruptData, "vocab_mismatch", "tokens", "the vocabulary is empty");
    }
    if (data_.tokens.size() > limits::kMaxVocab) {
      return Fail(ErrorCode::kCorruptData, "token_id_range", "tokens",
                  "{} tokens are more than the {} supported", data_.tokens.size(),
                  limits::kMaxVocab);
    }
    if (data_.types.empty()) data_.types.resize(data_.tokens.size(), TokenType::kNormal);
    if (data_.types.size() != data_.tokens.size()) {
      return Fail(ErrorCode::kCorruptData, "vocab_mismatch", "token_type",
                  "{} tokens but {} token types", data_.tokens.size(), data_.types.size());
    }
    if (data_.merges.size() > limits::kMaxMerges) {
      return Fail(ErrorCode::kCorruptData, "bad_merge", "merges",
                  "{} merges are more than the {} supported", data_.merges.size(),
                  limits::kMaxMerges);
    }
    return {};
  }

  // Steps multiply: what a short text becomes must stay within reason.
  Status CheckGrowth(std::string_view pipeline, double growth) {
    if (growth <= limits::kMaxTextGrowth) return {};
    return Fail(ErrorCode::kUnsupported, "text_growth", std::string(pipeline),
                "the steps of the {} may make a text {:.3g} times as long; at most {} times are "
                "supported",
                pipeline, growth, limits::kMaxTextGrowth);
  }

  Status CheckId(std::optional<TokenId> id, std::string_view what) {
    if (!id || (*id >= 0 && static_cast<size_t>(*id) < data_.tokens.size())) return {};
    return Fail(ErrorCode::kCorruptData, "token_id_range", std::string(what),
                "the {} token is {}, but the vocabulary has {} tokens", what, *id,
                data_.tokens.size());
  }

  Status CheckIds() {
    VIVACE_RETURN_IF_ERROR(CheckId(data_.bos, "bos"));
    VIVACE_RETURN_IF_ERROR(CheckId(data_.eos, "eos"));
    VIVACE_RETURN_IF_ERROR(CheckId(data_.pad, "pad"));
    VIVACE_RETURN_IF_ERROR(CheckId(data_.unknown, "unknown"));
    for (const TokenId id : data_.prefix) VIVACE_RETURN_IF_ERROR(CheckId(id, "template"));
    for (const TokenId id : data_.suffix) VIVACE_RETURN_IF_ERROR(CheckId(id, "template"));
    for (const TokenId id : data_.end_of_turn) VIVACE_RETURN_IF_ERROR(CheckId(id, "end of turn"));
    for (const auto& flags : data_.flags) VIVACE_RETURN_IF_ERROR(CheckId(flags.id, "added"));
    if (data_.add_bos && !data_.bos) {
      return Fail(ErrorCode::kCorruptData, "missing_bos", "bos",
                  "the file asks for a BOS token and names none");
    }
    if (data_.add_eos && !data_.eos) {
      return Fail(ErrorCode::kCorruptData, "missing_eos", "eos",
                  "the file asks for an EOS token and names none");
    }
    return {};
  }

  Status IndexNames() {
    tokenizer_->owned_names_ = std::move(data_.tokens);
    tokenizer_->names_.assign(tokenizer_->owned_names_.begin(), tokenizer_->owned_names_.end());
    names_ = tokenizer_->names_;
    by_name_ = StringIndex(names_);
    for (size_t id = 0; id < names_.size(); ++id) {
      if (names_[id].empty()) continue;
      const int32_t other = by_name_.Insert(static_cast<int32_t>(id));
      if (other != StringIndex::kNone) {
        return Fail(ErrorCode::kCorruptData, "duplicate_token", "tokens",
                    "tokens {} and {} are the same text", other, id);
      }
    }
    return {};
  }

  // What each token stands for. `encodable_` are those that ordinary text may become.
  Status BuildBytes() {
    const size_t count = names_.size();
    const bool byte_level = tokenizer_->cutter_.byte_level();
    encodable_.assign(count, false);
    std::ranges::sort(data_.flags, {}, &AddedTokenFlags::id);
    std::vector<size_t> ends;
    ends.reserve(count);
    for (size_t id = 0; id < count; ++id) {
      const TokenType type = data_.types[id];
      if (type == TokenType::kByte && !ParseByteToken(names_[id])) {
        return Fail(ErrorCode::kCorruptData, "bad_byte_token", "tokens",
                    "token {} is a byte token but is not written <0xNN>", id);
      }
      const auto written = InAlphabet() ? BytesFromAlphabet(names_[id]) : std::nullopt;
      AppendBytes(names_[id], type, written);
      encodable_[id] = (!IsAdded(type) || (!IsControl(type) && FlagsOf(id).in_model)) &&
                       (!byte_level || (type != TokenType::kByte && written));
      ends.push_back(tokenizer_->storage_.size());
      tokenizer_->special_.push_back(IsControl(type));
    }
    size_t begin = 0;
    for (const size_t end : ends) {
      tokenizer_->bytes_.push_back(
          std::string_view(tokenizer_->storage_).substr(begin, end - begin));
      begin = end;
    }
    return {};
  }

  // Whether the bytes of a token are those that its name writes in the byte-level alphabet.
  bool InAlphabet() const {
    return tokenizer_->cutter_.byte_level() || tokenizer_->decoder_.only_byte_level();
  }

  // `written`: what the name writes in that alphabet, if it can.
  void AppendBytes(std::string_view name, TokenType type,
                   const std::optional<std::string>& written) {
    const Decoder& decoder = tokenizer_->decoder_;
    std::string& storage = tokenizer_->storage_;
    const auto byte = ParseByteToken(name);
    if (byte && (type == TokenType::kByte || decoder.has_byte_fallback())) {
      storage.push_back(static_cast<char>(*byte));
    } else if (IsControl(type)) {
      storage.append(name);
    } else if (InAlphabet()) {
      storage.append(written ? std::string_view(*written) : name);
    } else {
      Decoder::Stream stream(decoder, /*inside=*/true);
      stream.Push(name, &storage);
      stream.Finish(&storage);
    }
  }

  Result<TokenId> MergePart(std::string_view name, size_t rank) {
    const TokenId id = by_name_.Find(name);
    if (id != StringIndex::kNone) return id;
    return Fail(ErrorCode::kCorruptData, "bad_merge", "merges",
                "merge {} needs a token that is not in the vocabulary", rank);
  }

  Result<std::vector<Bpe::Merge>> FileMerges() {
    std::vector<Bpe::Merge> merges;
    merges.reserve(data_.merges.size());
    std::string joined;
    for (uint32_t rank = 0; const auto& [left, right] : data_.merges) {
      const size_t prefix =
          right.starts_with(data_.continuing_prefix) ? data_.continuing_prefix.size() : 0;
      joined.assign(left).append(right, prefix);
      Bpe::Merge merge{.left = 0, .right = 0, .result = 0, .rank = rank};
      VIVACE_ASSIGN(merge.left, MergePart(left, rank));
      VIVACE_ASSIGN(merge.right, MergePart(right, rank));
      VIVACE_ASSIGN(merge.result, MergePart(joined, rank));
      ++rank;
      // No merge makes a control token out of ordinary text.
      if (!IsControl(data_.types[merge.result])) merges.push_back(merge);
    }
    return merges;
  }

  // Every cut of a token into two tokens, the token of greatest score first.
  Result<std::vector<Bpe::Merge>> ScoredMerges() {
    const auto joins = [&](size_t id) {
      const TokenType type = data_.types[id];
      return !names_[id].empty() && !IsControl(type) && type != TokenType::kByte &&
             type != TokenType::kUnused;
    };
    std::vector<TokenId> order;
    for (size_t id = 0; id < names_.size(); ++id) {
      if (joins(id) && names_[id].size() <= limits::kMaxTrieTokenBytes) {
        order.push_back(static_cast<TokenId>(id));
      }
    }
    std::ranges::stable_sort(
        order, [&](TokenId a, TokenId b) { return data_.scores[a] > data_.scores[b]; });
    std::vector<Bpe::Merge> merges;
    uint32_t rank = 0;
    for (const TokenId id : order) {
      const std::string_view name = names_[id];
      for (size_t at = 1; at < name.size(); ++at) {
        const TokenId left = by_name_.Find(name.substr(0, at));
        const TokenId right = left < 0 ? -1 : by_name_.Find(name.substr(at));
        if (right >= 0 && joins(left) && joins(right)) merges.push_back({left, right, id, rank});
      }
      if (!merges.empty() && merges.back().rank == rank) ++rank;
      if (merges.size() > limits::kMaxMerges) {
        return Fail(ErrorCode::kCorruptData, "bad_merge", "tokens",
                    "the tokens merge in more than {} ways", limits::kMaxMerges);
      }
    }
    return merges;
  }

  Status BuildBpe() {
    VIVACE_ASSIGN(const auto merges, data_.merge_by_score ? ScoredMerges() : FileMerges());
    Bpe::Options options;
    options.characters = !tokenizer_->cutter_.byte_level();
    if (options.characters && data_.byte_fallback)
      options.byte_tokens = ByteTokens(tokenizer_->owned_names_);
    options.unknown = Unknown().value_or(-1);
    options.fuse_unknown = data_.fuse_unknown;
    options.ignore_merges = data_.ignore_merges;
    options.continuing_prefix = data_.continuing_prefix;
    options.word_suffix = data_.word_suffix;
    if (options.characters) {
      tokenizer_->model_.emplace<Bpe>(names_, encodable_, merges, options);
      return {};
    }
    // The model sees the bytes that the names write, whatever the decoder makes of them.
    std::vector<std::string_view>& bytes = tokenizer_->bytes_;
    for (size_t id = 0; id < names_.size(); ++id) {
      if (encodable_[id] && bytes[id].size() == 1) {
        options.byte_tokens.ids[static_cast<unsigned char>(bytes[id][0])] =
            static_cast<TokenId>(id);
      }
    }
    tokenizer_->model_.emplace<Bpe>(bytes, encodable_, merges, options);
    return {};
  }

  // The unknown token where text may become it: one that also begins or ends something may not be
  // what someone writes.
  std::optional<TokenId> Unknown() const {
    const auto id = data_.unknown;
    if (!id || !IsControl(data_.types[*id])) return id;
    const bool role = id == data_.bos || id == data_.eos ||
                      std::ranges::find(data_.end_of_turn, *id) != data_.end_of_turn.end();
    return role ? std::nullopt : id;
  }

  Status BuildModel() {
    using Model = TokenizerData::Model;
    const bool scored = data_.model == Model::kUnigram || data_.merge_by_score;
    if (scored && data_.scores.size() != names_.size()) {
      return Fail(ErrorCode::kCorruptData, "vocab_mismatch", "scores", "{} tokens but {} scores",
                  names_.size(), data_.scores.size());
    }
    if (data_.model == Model::kBpe) return BuildBpe();
    for (size_t id = 0; id < names_.size(); ++id) {
      if (names_[id].size() > limits::kMaxTrieTokenBytes) {
        return Fail(ErrorCode::kUnsupported, "token_too_long", "tokens",
                    "token {} has {} bytes, more than {}", id, names_[id].size(),
                    limits::kMaxTrieTokenBytes);
      }
    }
    const auto& names = tokenizer_->owned_names_;
    if (data_.model == Model::kUnigram) {
      tokenizer_->model_.emplace<Unigram>(names, data_.scores, encodable_,
                                          Unigram::Options{Unknown(), data_.byte_fallback});
    } else if (data_.model == Model::kWordPiece) {
      tokenizer_->model_.emplace<WordPiece>(
          names, encodable_,
          WordPiece::Options{data_.continuing_prefix, data_.max_word_characters, Unknown()});
    } else {
      tokenizer_->model_.emplace<WordLevel>(names_, encodable_, Unknown());
    }
    return {};
  }

  Status BuildAdded() {
    std::vector<AddedTokens::Token> raw, normalized, mixed_raw, mixed_normalized;
    std::vector<size_t> ends;  // of the normalised contents
    std::string& contents = tokenizer_->normalized_names_;
    for (const bool control : {true, false}) {
      for (size_t id = 0; id < names_.size(); ++id) {
        const TokenType type = data_.types[id];
        if (!IsAdded(type) || IsControl(type) != control || names_[id].empty()) continue;
        if (names_[id].size() > limits::kMaxAddedTokenBytes) {
          return Fail(ErrorCode::kCorruptData, "token_too_long", "tokens",
                      "special token {} has {} bytes, more than {}", id, names_[id].size(),
                      limits::kMaxAddedTokenBytes);
        }
        const AddedTokenFlags flags = FlagsOf(id);
        const AddedTokens::Token token = {names_[id],   flags.id,     control,
                                          flags.lstrip, flags.rstrip, flags.single_word};
        (flags.normalized ? normalized : raw).push_back(token);
        (flags.normalized && !control ? mixed_normalized : mixed_raw).push_back(token);
      }
    }
    const bool mixed = normalized.size() != mixed_normalized.size();
    for (const auto& token : normalized) {
      std::string storage;
      contents.append(tokenizer_->normalizer_.Apply(token.content, &storage));
      ends.push_back(contents.size());
    }
    size_t begin = 0;
    const size_t controls = normalized.size() - mixed_normalized.size();
    for (size_t i = 0; i < ends.size(); begin = ends[i++]) {
      const auto content = std::string_view(contents).substr(begin, ends[i] - begin);
      if (content != normalized[i].content) {
        tokenizer_->shown_names_.emplace(normalized[i].id, content);
      }
      normalized[i].content = content;
      if (i >= controls) mixed_normalized[i - controls].content = content;
    }
    const auto is_empty = [](const AddedTokens::Token& token) { return token.content.empty(); };
    std::erase_if(normalized, is_empty);
    std::erase_if(mixed_normalized, is_empty);
    tokenizer_->raw_added_.emplace(raw);
    tokenizer_->normalized_added_.emplace(normalized);
    if (!mixed) return {};
    tokenizer_->mixed_raw_added_.emplace(mixed_raw);
    tokenizer_->mixed_normalized_added_.emplace(mixed_normalized);
    return {};
  }

  AddedTokenFlags FlagsOf(size_t index) const {
    const auto id = static_cast<TokenId>(index);
    const auto found = std::ranges::lower_bound(data_.flags, id, {}, &AddedTokenFlags::id);
    return found != data_.flags.end() && found->id == id ? *found : AddedTokenFlags{.id = id};
  }

  TokenizerData data_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::span<const std::string_view> names_;  // the tokens as the file writes them
  StringIndex by_name_;
  std::vector<bool> encodable_;
};

Result<std::shared_ptr<const Tokenizer>> Tokenizer::Create(TokenizerData data) {
  return TokenizerBuilder(std::move(data)).Build();
}

}  // namespace vivace
