#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_map>

namespace vivace {
namespace {

// A random byte-level vocabulary over a few letters: tokens, and merges in a random order of ranks.
struct RandomBpe {
  std::vector<std::string> texts;
  std::vector<std::string_view> tokens;
  std::vector<bool> encodable;
  std::vector<Bpe::Merge> merges;
  Bpe::Options options{};

  RandomBpe(std::mt19937* rng, int letters, int count) {
    std::unordered_map<std::string, TokenId> ids;
    for (int i = 0; i < letters; ++i) {
      options.byte_tokens.ids['a' + i] = i;
      texts.push_back(std::string(1, static_cast<char>('a' + i)));
      ids[texts.back()] = i;
    }
    for (int i = 0; i < count; ++i) {
      const auto left = static_cast<TokenId>((*rng)() % texts.size());
      const auto right = static_cast<TokenId>((*rng)() % texts.size());
      const std::string joined = texts[left] + texts[right];
      if (joined.size() > 12) continue;
      const auto [at, fresh] = ids.emplace(joined, static_cast<TokenId>(texts.size()));
      if (fresh) texts.push_back(joined);
      merges.push_back({left, right, at->second, 0});
    }
    std::shuffle(merges.begin(), merges.end(), *rng);
    for (uint32_t rank = 0; Bpe::Merge & merge : merges) merge.rank = rank++;
    tokens.assign(texts.begin(), texts.end());
    encodable.assign(tokens.size(), true);
  }

  // The definition: again and again, the leftmost pair of the lowest rank.
  std::vector<TokenId> Naive(std::string_view piece) const {
    std::vector<TokenId> ids;
    for (const char c : piece)
      ids.push_back(options.byte_tokens.ids[static_cast<unsigned char>(c)]);
    while (true) {
      size_t best_rank = merges.size(), best = 0;
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        for (size_t rank = merges.size(); rank-- > 0;) {  // of equal pairs the last counts
          if (merges[rank].left != ids[i] || merges[rank].right != ids[i + 1]) continue;
          if (rank < best_rank) best_rank = rank, best = i;
          break;
        }
      }
      if (best_rank == merges.size()) return ids;
      ids[best] = merges[best_rank].result;
      ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
  }
};

std::vector<TokenId> Encode(const Bpe& bpe, std::string_view piece) {
  Bpe::Scratch scratch;
  std::vector<TokenId> ids;
  bpe.Encode(piece, &scratch, &ids);
  return ids;
}

TEST(Bpe, IsTheDefinitionForShortAndLongPieces) {
  std::mt19937 rng(3);
  for (int round = 0; round < 60; ++round) {
    const RandomBpe random(&rng, 2 + round % 3, 40);
    const Bpe bpe(random.tokens, random.encodable, random.merges, random.options);
    for (int i = 0; i < 40; ++i) {
      std::string piece(rng() % 80, 'a');
      for (char& c : piece) c = static_cast<char>('a' + rng() % (2 + round % 3));
      ASSERT_EQ(Encode(bpe, piece), random.Naive(piece)) << piece;
      ASSERT_EQ(Encode(bpe, piece), random.Naive(piece)) << "second time: " << piece;
    }
  }
}

TEST(Bpe, ATokenThatMergesDoNotReach) {
  // "abc" is a token, but a+b comes first and ab+c is no merge.
  const std::vector<std::string_view> tokens = {"a", "b", "c", "ab", "bc", "abc"};
  const std::vector<Bpe::Merge> merges = {{0, 1, 3, 0}, {1, 2, 4, 1}, {0, 4, 5, 2}};
  Bpe::Options options{};
  options.byte_tokens.ids['a'] = 0, options.byte_tokens.ids['b'] = 1,
  options.byte_tokens.ids['c'] = 2;
  const std::vector<bool> all(tokens.size(), true);
  const Bpe merged(tokens, all, merges, options);
  EXPECT_EQ(Encode(merged, "abc"), (std::vector<TokenId>{3, 2}));
  EXPECT_EQ(Encode(merged, "abc"), (std::vector<TokenId>{3, 2}));
  options.ignore_merges = true;
  EXPECT_EQ(Encode(Bpe(tokens, all, merges, options), "abc"), (std::vector<TokenId>{5}));
}

TEST(Bpe, BytesWithoutATokenAreDroppedOrUnknown) {
  const std::vector<std::string_view> tokens = {"a", "b", "ab", "?"};
  const std::vector<Bpe::Merge> merges = {{0, 1, 2, 0}};
  Bpe::Options options{};
  options.byte_tokens.ids['a'] = 0, options.byte_tokens.ids['b'] = 1;
  const std::vector<bool> all(tokens.size(), true);
  EXPECT_EQ(Encode(Bpe(tokens, all, merges, options), "azzb"), (std::vector<TokenId>{2}));
  options.unknown = 3;
  EXPECT_EQ(Encode(Bpe(tokens, all, merges, options), "azzb"), (std::vector<TokenId>{0, 3, 3, 1}));
  options.fuse_unknown = true;
  EXPECT_EQ(Encode(Bpe(tokens, all, merges, options), "azzb"), (std::vector<TokenId>{0, 3, 1}));
}

}  // namespace
}  // namespace vivace
