#include "text/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode.h"
#include "text/unicode_class.h"

namespace vivace {
namespace {

bool IsSpaceAt(std::string_view text, size_t pos, size_t* length) {
  const utf8::Decoded c = utf8::Decode(text, pos);
  *length = c.length;
  return c.valid && (unicode::Properties(c.code_point) & unicode::kSpace) != 0;
}

bool IsWordAt(std::string_view text, size_t pos) {
  return (unicode::Classes(utf8::Decode(text, pos).code_point) & unicode::kWord) != 0;
}

// The begin of the character that ends at `end` > from.
size_t CharacterBefore(std::string_view text, size_t from, size_t end) {
  size_t begin = end - 1;
  while (begin > from && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

}  // namespace

size_t TrustedRuns::EndAt(size_t pos) {
  while (end_ <= pos && !left_.empty()) {
    const Segment& segment = left_.front();
    left_ = left_.subspan(1);
    if (!segment.trusted || segment.begin >= segment.end) continue;
    begin_ = segment.begin;
    end_ = segment.end;
    while (!left_.empty() && left_.front().trusted && left_.front().begin == end_) {
      end_ = std::max(end_, left_.front().end);
      left_ = left_.subspan(1);
    }
  }
  return begin_ <= pos && pos < end_ ? end_ : pos;
}

AddedTokens::AddedTokens(std::span<const Token> tokens)
    : tokens_(tokens.begin(), tokens.end()), nodes_(1) {
  for (size_t i = 0; i < tokens_.size(); ++i) Insert(static_cast<int32_t>(i));
}

int32_t AddedTokens::Child(int32_t node, char byte) const {
  int32_t child = nodes_[node].child;
  while (child >= 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

void AddedTokens::Insert(int32_t token) {
  const std::string_view content = tokens_[token].content;
  begins_[static_cast<unsigned char>(content[0])] = true;
  int32_t node = 0;
  for (const char byte : content) {
    int32_t child = Child(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({-1, nodes_[node].child, -1, byte});
      nodes_[node].child = child;
    }
    node = child;
  }
  if (nodes_[node].token < 0) nodes_[node].token = token;  // of equals the first
}

const AddedTokens::Token* AddedTokens::LongestAt(std::string_view text, size_t pos,
                                                 size_t trusted_end) const {
  const Token* longest = nullptr;
  int32_t node = 0;
  for (size_t at = pos; at < text.size(); ++at) {
    node = Child(node, text[at]);
    if (node < 0) break;
    if (nodes_[node].token < 0) continue;
    const Token& token = tokens_[nodes_[node].token];
    if (!token.control || at < trusted_end) longest = &token;
  }
  return longest;
}

std::optional<AddedTokens::Match> AddedTokens::Find(std::string_view text, size_t from,
                                                    TrustedRuns* trusted) const {
  if (tokens_.empty()) return std::nullopt;
  for (size_t pos = from; pos < text.size(); ++pos) {
    if (!begins_[static_cast<unsigned char>(text[pos])]) continue;
    const Token* token = LongestAt(text, pos, trusted->EndAt(pos));
    if (token != nullptr) return Match{pos, pos + token->content.size(), token};
  }
  return std::nullopt;
}

bool AddedTokens::IsWord(std::string_view text, const Match& match) {
  if (!match.token->single_word) return true;
  if (match.end < text.size() && IsWordAt(text, match.end)) return false;
  return match.begin == 0 || !IsWordAt(text, CharacterBefore(text, 0, match.begin));
}

// The begin of the white space that ends at `end`, not before `from`.
size_t AddedTokens::Spaces::Before(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    const size_t begin = CharacterBefore(text, from, end);
    size_t length = 0;
    if (!IsSpaceAt(text, begin, &length) || begin + length != end) return end;
    end = begin;
  }
  return end;
}

size_t AddedTokens::Spaces::After(std::string_view text, size_t pos) {
  if (run_begin <= pos && pos <= run_end) return run_end;
  run_begin = pos;
  size_t length = 0;
  while (pos < text.size() && IsSpaceAt(text, pos, &length)) pos += length;
  return run_end = pos;
}

std::optional<TokenId> AddedTokens::FindControl(std::string_view content) const {
  int32_t node = 0;
  for (const char byte : content) {
    node = Child(node, byte);
    if (node < 0) return std::nullopt;
  }
  const int32_t token = nodes_[node].token;
  if (token < 0 || !tokens_[token].control) return std::nullopt;
  return tokens_[token].id;
}

}  // namespace vivace
