#include "text/unigram.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "base/utf8.h"

namespace vivace {

Unigram::Unigram(std::span<const std::string> tokens, std::span<const double> scores,
                 const std::vector<bool>& encodable, const Options& options)
    : scores_(scores.begin(), scores.end()), options_(options) {
  constexpr double kUnknownPenalty = 10;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    lowest = std::min(lowest, scores_[id]);
    if (encodable[id]) trie_.Insert(tokens[id], static_cast<TokenId>(id));
  }
  unknown_score_ = lowest - kUnknownPenalty;
  if (options.byte_fallback) bytes_ = ByteTokens(tokens);
}

void Unigram::AddUnknown(std::string_view text, std::vector<TokenId>* out) const {
  if (bytes_.ForEach(text, [&](TokenId id) { out->push_back(id); })) return;
  if (options_.unknown) out->push_back(*options_.unknown);
}

void Unigram::Encode(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const {
  for (; piece.size() > kMaxPiece; piece.remove_prefix(kMaxPiece)) {
    EncodeCut(piece.substr(0, kMaxPiece), scratch, out);
  }
  EncodeCut(piece, scratch, out);
}

void Unigram::EncodeCut(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const {
  auto& nodes = scratch->nodes;
  nodes.assign(piece.size() + 1, {});
  const auto offer = [&](size_t end, size_t length, TokenId id, double score) {
    Scratch::Node& node = nodes[end];
    if (node.id == kNoToken || score > node.score) {
      node = {score, id, static_cast<uint32_t>(length)};
    }
  };
  for (size_t pos = 0; pos < piece.size();) {
    const double here = nodes[pos].score;
    const size_t character = utf8::Decode(piece, pos).length;
    bool has_character = false;
    trie_.ForEachPrefix(piece.substr(pos), [&](size_t length, TokenId id) {
      offer(pos + length, length, id, scores_[id] + here);
      has_character |= length == character;
    });
    if (!has_character) offer(pos + character, character, kUnknown, unknown_score_ + here);
    pos += character;
  }
  auto& path = scratch->path;
  path.clear();
  for (size_t end = piece.size(); end > 0;) {
    const Scratch::Node& node = nodes[end];
    const size_t begin = end - node.length;
    const bool joins =
        !path.empty() && node.id == kUnknown && nodes[path.back().second].id == kUnknown;
    if (joins) {
      path.back().first = begin;
    } else {
      path.push_back({begin, end});
    }
    end = begin;
  }
  for (const auto& [begin, end] : std::views::reverse(path)) {
    const TokenId id = nodes[end].id;
    if (id == kUnknown) {
      AddUnknown(piece.substr(begin, end - begin), out);
    } else {
      out->push_back(id);
    }
  }
}

}  // namespace vivace
