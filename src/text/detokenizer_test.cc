#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "text/text_testing.h"

namespace vivace {
namespace {

TEST(Detokenizer, HoldsHalfACharacterBack) {
  Detokenizer detokenizer(testing::Make(testing::TinyData()), true);
  EXPECT_EQ(detokenizer.Push(0xF0), "");
  EXPECT_EQ(detokenizer.Push(0x9F), "");
  EXPECT_TRUE(detokenizer.holds_back());
  EXPECT_EQ(detokenizer.Push(0x98), "");
  EXPECT_EQ(detokenizer.Push(0x80), "😀");
  EXPECT_FALSE(detokenizer.holds_back());
  EXPECT_EQ(detokenizer.Push(259), "hello");
  EXPECT_EQ(detokenizer.Push(0xE2), "");
  EXPECT_EQ(detokenizer.Push('x'), "\uFFFDx");
  EXPECT_EQ(detokenizer.Push(0xC3), "");
  EXPECT_EQ(detokenizer.Finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST(Detokenizer, SmolLm2Emoji) {
  const auto tokenizer = testing::SmolLm2();
  if (tokenizer == nullptr) GTEST_SKIP() << "needs models/ (./dev setup)";
  Detokenizer detokenizer(tokenizer, true);
  EXPECT_EQ(detokenizer.Push(10813), "");
  EXPECT_EQ(detokenizer.Push(242), "");
  EXPECT_EQ(detokenizer.Push(218), "😀");
  EXPECT_EQ(tokenizer->TokenBytes(10813), "\xF0\x9F");
  EXPECT_EQ(detokenizer.Push(24211), "\uFFFD");  // a token that really is U+FFFD
}

TEST(Detokenizer, SpecialTokensAsAsked) {
  const auto tokenizer = testing::Make(testing::TinyData());
  Detokenizer skips(tokenizer, true), keeps(tokenizer, false);
  EXPECT_EQ(skips.Push(261), "");
  EXPECT_EQ(keeps.Push(261), "<|end|>");
  Detokenizer shows(tokenizer, true, {261});
  EXPECT_EQ(shows.Push(261), "<|end|>");
  EXPECT_EQ(skips.Push(262), "<think>");  // a word, not a control token
  EXPECT_EQ(skips.Push(1 << 25), "");     // no such token
  EXPECT_EQ(skips.Push(-1), "");
}

TEST(Detokenizer, DeltasJoinToTheWholeDecoding) {
  const auto tokenizer = testing::Make(testing::TinyData());
  std::mt19937 rng(4);
  const TokenId pool[] = {'a',  0xF0, 0x9F, 0x98, 0x80, 0xE2, 0x82, 0xAC, 0xC3,
                          0xA9, 0xED, 0xA0, 0xFF, 259,  260,  261,  262};
  for (int round = 0; round < 20000; ++round) {
    std::vector<TokenId> ids(rng() % 16);
    for (TokenId& id : ids) id = pool[rng() % std::size(pool)];
    const bool skip = rng() % 2 == 0;
    Detokenizer detokenizer(tokenizer, skip);
    std::string joined;
    for (const TokenId id : ids) {
      const std::string delta(detokenizer.Push(id));
      ASSERT_TRUE(utf8::IsValid(delta));
      joined += delta;
    }
    joined += detokenizer.Finish();
    ASSERT_EQ(joined, tokenizer->Decode(ids, skip));
  }
}

}  // namespace
}  // namespace vivace
