// Tokenizer::Create: checks what a file said and builds the indexes from it.
#include <algorithm>
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
    VIVACE_RETURN_IF_ERROR(BuildBytes());
    VIVACE_RETURN_IF_ERROR(BuildBpe());
    VIVACE_RETURN_IF_ERROR(BuildAdded());
    Tokenizer& t = *tokenizer_;
    t.pretokenizer_ = data_.pretokenizer;
    t.normalizer_ = data_.normalizer;
    t.add_space_prefix_ = data_.add_space_prefix;
    t.add_bos_ = data_.add_bos;
    t.add_eos_ = data_.add_eos;
    t.bos_ = data_.bos;
    t.eos_ = data_.eos;
    t.pad_ = data_.pad;
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
    names_.assign(data_.tokens.begin(), data_.tokens.end());
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
    const size_t count = data_.tokens.size();
    encodable_.assign(count, false);
    options_.byte_tokens.fill(-1);
    std::vector<size_t> ends;
    ends.reserve(count);
    for (size_t id = 0; id < count; ++id) {
      const TokenType type = data_.types[id];
      if (type == TokenType::kByte) {
        const auto byte = ParseByteToken(names_[id]);
        if (!byte) {
          return Fail(ErrorCode::kCorruptData, "bad_byte_token", "tokens",
                      "token {} is a byte token but is not written <0xNN>", id);
        }
        tokenizer_->storage_.push_back(static_cast<char>(*byte));
      } else if (auto bytes = IsAdded(type) ? std::nullopt : BytesFromAlphabet(names_[id])) {
        encodable_[id] = true;
        tokenizer_->storage_.append(*bytes);
        if (bytes->size() == 1) {
          options_.byte_tokens[static_cast<unsigned char>((*bytes)[0])] = static_cast<TokenId>(id);
        }
      } else {
        tokenizer_->storage_.append(names_[id]);
      }
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

  Result<TokenId> MergePart(std::string_view name, size_t rank) {
    const TokenId id = by_name_.Find(name);
    if (id != StringIndex::kNone) return id;
    return Fail(ErrorCode::kCorruptData, "bad_merge", "merges",
                "merge {} needs a token that is not in the vocabulary", rank);
  }

  Status BuildBpe() {
    std::vector<Bpe::Merge> merges;
    merges.reserve(data_.merges.size());
    std::string joined;
    for (const auto& [left, right] : data_.merges) {
      const size_t rank = merges.size();
      joined.assign(left).append(right);
      Bpe::Merge merge;
      VIVACE_ASSIGN(merge.left, MergePart(left, rank));
      VIVACE_ASSIGN(merge.right, MergePart(right, rank));
      VIVACE_ASSIGN(merge.result, MergePart(joined, rank));
      if (IsControl(data_.types[merge.result])) {
        return Fail(ErrorCode::kCorruptData, "bad_merge", "merges",
                    "merge {} makes the control token {} out of ordinary text", rank, merge.result);
      }
      merges.push_back(merge);
    }
    // A control token for unknown bytes would let untrusted text produce it; such bytes are
    // dropped.
    if (data_.unknown && !IsControl(data_.types[*data_.unknown])) options_.unknown = *data_.unknown;
    options_.fuse_unknown = data_.fuse_unknown;
    options_.ignore_merges = data_.ignore_merges;
    tokenizer_->bpe_.emplace(tokenizer_->bytes_, encodable_, merges, options_);
    return {};
  }

  Status BuildAdded() {
    std::ranges::sort(data_.flags, {}, &AddedTokenFlags::id);
    std::vector<AddedTokens::Token> raw, normalized;
    for (size_t id = 0; id < names_.size(); ++id) {
      const TokenType type = data_.types[id];
      if (!IsAdded(type) || names_[id].empty()) continue;
      if (names_[id].size() > limits::kMaxAddedTokenBytes) {
        return Fail(ErrorCode::kCorruptData, "token_too_long", "tokens",
                    "special token {} has {} bytes, more than {}", id, names_[id].size(),
                    limits::kMaxAddedTokenBytes);
      }
      const auto token_id = static_cast<TokenId>(id);
      const auto flags = std::ranges::lower_bound(data_.flags, token_id, {}, &AddedTokenFlags::id);
      const bool flagged = flags != data_.flags.end() && flags->id == token_id;
      // Control tokens are found before the normaliser, where trust is known byte by byte.
      const bool after = flagged && flags->normalized && !IsControl(type);
      (after ? normalized : raw)
          .push_back({tokenizer_->bytes_[id], token_id, IsControl(type), flagged && flags->lstrip,
                      flagged && flags->rstrip});
    }
    tokenizer_->raw_added_.emplace(raw);
    tokenizer_->normalized_added_.emplace(normalized);
    return {};
  }

  TokenizerData data_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::string_view> names_;  // the tokens as the file writes them
  StringIndex by_name_;
  std::vector<bool> encodable_;
  Bpe::Options options_{};
};

Result<std::shared_ptr<const Tokenizer>> Tokenizer::Create(TokenizerData data) {
  return TokenizerBuilder(std::move(data)).Build();
}

}  // namespace vivace
