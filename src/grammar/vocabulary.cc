#include "grammar/vocabulary.h"

#include <algorithm>
#include <numeric>

namespace vivace::grammar {
namespace {

constexpr size_t kMaxTokenBytes = 60'000;  // of a depth

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> bytes, std::vector<TokenId> stop, int32_t size)
    : bytes_(std::move(bytes)), stop_(std::move(stop)), size_(size) {
  if (bytes_.size() > static_cast<size_t>(size_)) bytes_.resize(static_cast<size_t>(size_));
  std::erase_if(stop_, [&](TokenId id) { return id < 0 || id >= size_; });
  std::ranges::sort(stop_);
  // A token that ends the output has no other meaning.
  for (const TokenId id : stop_) {
    if (static_cast<size_t>(id) < bytes_.size()) bytes_[static_cast<size_t>(id)].clear();
  }
  BuildTrie();
}

std::shared_ptr<const Vocabulary> Vocabulary::From(const Tokenizer& tokenizer, int32_t size,
                                                   std::vector<TokenId> stop) {
  std::vector<std::string> bytes;
  bytes.reserve(tokenizer.vocab_size());
  for (size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    bytes.emplace_back(tokenizer.IsSpecial(token) ? std::string_view()
                                                  : tokenizer.TokenBytes(token));
  }
  return std::make_shared<Vocabulary>(std::move(bytes), std::move(stop), size);
}

bool Vocabulary::IsStop(TokenId token) const { return std::ranges::binary_search(stop_, token); }

void Vocabulary::BuildTrie() {
  std::vector<TokenId> order;
  for (size_t id = 0; id < bytes_.size(); ++id) {
    if (!bytes_[id].empty() && bytes_[id].size() < kMaxTokenBytes) {
      order.push_back(static_cast<TokenId>(id));
    }
  }
  std::ranges::sort(order, [&](TokenId a, TokenId b) {
    const int compared = BytesOf(a).compare(BytesOf(b));
    return compared != 0 ? compared < 0 : a < b;
  });
  twins_.assign(bytes_.size(), -1);
  std::vector<int32_t> open;  // the nodes from the root to the last one
  std::string_view last;
  TokenId last_token = -1;
  for (const TokenId token : order) {
    const std::string_view text = BytesOf(token);
    if (text == last && last_token >= 0) {
      twins_[static_cast<size_t>(last_token)] = token;
      nodes_.back().more = true;
      last_token = token;
      continue;
    }
    const size_t common = static_cast<size_t>(std::ranges::mismatch(text, last).in1 - text.begin());
    while (open.size() > common) {
      nodes_[static_cast<size_t>(open.back())].end = static_cast<int32_t>(nodes_.size());
      open.pop_back();
    }
    for (size_t i = common; i < text.size(); ++i) {
      open.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({0, -1, static_cast<uint16_t>(i + 1), static_cast<uint8_t>(text[i]), false});
    }
    nodes_.back().token = token;
    last = text;
    last_token = token;
  }
  for (const int32_t node : open) {
    nodes_[static_cast<size_t>(node)].end = static_cast<int32_t>(nodes_.size());
  }
  std::ranges::fill(first_, -1);
  for (size_t i = 0; i < nodes_.size(); i = static_cast<size_t>(nodes_[i].end)) {
    first_[nodes_[i].byte] = static_cast<int32_t>(i);
    spelled_[nodes_[i].byte] = nodes_[i].token >= 0;
  }
}

// Calls `visit` with each token at `start`, shortest first, and where it ends. Whether a token may
// begin with all that is there, and go on.
template <typename Visit>
bool Vocabulary::ForEachAt(std::string_view text, size_t start, const Visit& visit) const {
  size_t pos = start;
  int32_t node = first_[static_cast<uint8_t>(text[pos])];
  while (node >= 0) {
    const Node& at = nodes_[static_cast<size_t>(node)];
    ++pos;
    if (at.token >= 0) visit(at.token, pos);
    int32_t child = node + 1;
    if (pos == text.size()) return child < at.end;
    while (child < at.end &&
           nodes_[static_cast<size_t>(child)].byte != static_cast<uint8_t>(text[pos])) {
      child = nodes_[static_cast<size_t>(child)].end;
    }
    node = child < at.end ? child : -1;
  }
  return false;
}

bool Vocabulary::Tokenize(std::string_view text, std::vector<TokenId>* tokens) const {
  constexpr int32_t kNone = INT32_MAX;
  struct Best {
    int32_t count = kNone;
    TokenId token = -1;
  };
  std::vector<Best> best(text.size() + 1);  // from a byte to the end
  best[text.size()].count = 0;
  for (size_t start = text.size(); start-- > 0;) {
    Best& here = best[start];
    ForEachAt(text, start, [&](TokenId token, size_t end) {
      const int32_t rest = best[end].count;
      if (rest != kNone && rest + 1 <= here.count)
        here = {rest + 1, token};  // the longest of equals
    });
  }
  if (best[0].count == kNone) return false;
  for (size_t pos = 0; pos < text.size(); pos += BytesOf(tokens->back()).size()) {
    tokens->push_back(best[pos].token);
  }
  return true;
}

bool Vocabulary::MayExtend(std::string_view text, size_t start) const {
  return ForEachAt(text, start, [](TokenId, size_t) {});
}

}  // namespace vivace::grammar
