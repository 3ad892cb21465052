#include "grammar/vocabulary.h"

#include <algorithm>

namespace vivace::grammar {
namespace {

constexpr size_t kMaxTokenBytes = 60'000;  // longer ones are in no plan

// Of a token, on average: its bytes here, in xgrammar's list by id and its list by bytes, each in a
// std::string (few are too long to lie in it), four numbers there, and two nodes of the trie that
// no other token shares.
constexpr size_t kBytesOfToken = 3 * sizeof(std::string) + 4 * sizeof(int32_t) + 2 * 12;

}  // namespace

size_t SharedGrammarBytes(size_t tokens) { return tokens * kBytesOfToken; }

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
  std::vector<int32_t> open;  // the nodes from the root to the last one
  std::string_view last;
  for (const TokenId token : order) {
    const std::string_view text = BytesOf(token);
    if (text == last) continue;
    const size_t common = static_cast<size_t>(std::ranges::mismatch(text, last).in1 - text.begin());
    while (open.size() > common) {
      nodes_[static_cast<size_t>(open.back())].end = static_cast<int32_t>(nodes_.size());
      open.pop_back();
    }
    for (size_t i = common; i < text.size(); ++i) {
      open.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({0, -1, static_cast<uint8_t>(text[i])});
    }
    nodes_.back().token = token;
    last = text;
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

bool Vocabulary::MayExtend(std::string_view text, size_t start) const {
  return ForEachAt(text, start, [](TokenId, size_t) {});
}

}  // namespace vivace::grammar
