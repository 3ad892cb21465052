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
    bool lstrip, rstrip;
  };
  struct Match {
    size_t begin, end;
    TokenId id;
  };

  explicit AddedTokens(std::span<const Token> tokens);
  bool empty() const { return tokens_.empty(); }

  // The first match in `text` at or after `from`.
  std::optional<Match> Find(std::string_view text, size_t from, TrustedRuns* trusted) const;

  // The control token with this very content.
  std::optional<TokenId> FindControl(std::string_view content) const;

 private:
  struct Node {
    int32_t child = -1, sibling = -1;  // nodes
    int32_t token = -1;                // in tokens_
    char byte = 0;
  };

  int32_t Child(int32_t node, char byte) const;
  void Insert(int32_t token);
  const Token* LongestAt(std::string_view text, size_t pos, size_t trusted_end) const;

  std::vector<Token> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> begins_{};  // bytes that some token begins with
};

}  // namespace vivace
