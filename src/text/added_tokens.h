// AddedTokens: finds control and user-defined tokens in text, and the trust that control tokens
// ask.
//
// Leftmost match first, longest of those that begin together. A control token is found only where
// all its bytes are trusted; a user-defined token anywhere. Finding costs a walk down a trie at
// each byte that begins some token: at most limits::kMaxAddedTokenBytes steps of it. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/segment.h"

namespace vivace {

// The trusted parts of a text, asked for at positions that only grow.
class TrustedRuns {
 public:
  // Segments in order; what none of them covers is not trusted. The caller keeps them alive.
  explicit TrustedRuns(std::span<const Segment> segments) : left_(segments) {}

  // One past the last byte of the trusted run that holds `pos`; `pos` itself if it is not trusted.
  size_t EndAt(size_t pos);

 private:
  std::span<const Segment> left_;
  size_t begin_ = 0, end_ = 0;  // the last run that was found
};

class AddedTokens {
 public:
  struct Token {
    std::string_view content;  // not empty; the caller keeps it alive
    TokenId id;
    bool control;
    bool lstrip, rstrip, single_word;
  };

  explicit AddedTokens(std::span<const Token> tokens);
  bool empty() const { return tokens_.empty(); }

  // Calls on_token(id) for each token in `text`, and on_text(begin, end) for what lies between, in
  // order. As Hugging Face does it: a token that is no word of its own hides what it covers, and
  // tokens whose white space runs into the next one do not shift it.
  template <typename OnText, typename OnToken>
  void Split(std::string_view text, TrustedRuns* trusted, OnText on_text, OnToken on_token) const {
    size_t from = 0, taken = 0;
    Spaces spaces;
    while (const auto match = Find(text, from, trusted)) {
      from = match->end;
      if (!IsWord(text, *match)) continue;
      const size_t begin =
          match->token->lstrip ? spaces.Before(text, taken, match->begin) : match->begin;
      if (taken < begin) on_text(taken, begin);
      on_token(match->token->id);
      taken = match->token->rstrip ? spaces.After(text, match->end) : match->end;
    }
    if (taken != text.size()) on_text(taken, text.size());
  }

  // The control token with this very content.
  std::optional<TokenId> FindControl(std::string_view content) const;

 private:
  struct Match {
    size_t begin, end;
    const Token* token;
  };
  // The white space around a match; remembers the last run, so that none is walked again and again.
  struct Spaces {
    size_t run_begin = 1, run_end = 0;
    static size_t Before(std::string_view text, size_t from, size_t end);
    size_t After(std::string_view text, size_t pos);
  };
  struct Node {
    int32_t child = -1, sibling = -1;  // nodes
    int32_t token = -1;                // in tokens_
    char byte = 0;
  };

  std::optional<Match> Find(std::string_view text, size_t from, TrustedRuns* trusted) const;
  static bool IsWord(std::string_view text, const Match& match);
  int32_t Child(int32_t node, char byte) const;
  void Insert(int32_t token);
  const Token* LongestAt(std::string_view text, size_t pos, size_t trusted_end) const;

  std::vector<Token> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> begins_{};  // bytes that some token begins with
};

}  // namespace vivace
