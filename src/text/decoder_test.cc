#include "text/decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace vivace {
namespace {

std::vector<DecoderStep> Llama() {
  return {decode::Replace{TextPattern(std::string("\u2581")), " "}, decode::ByteFallback{},
          decode::Fuse{}, decode::Strip{" ", 1, 0}};
}

std::string Decode(const Decoder& decoder, const std::vector<std::string>& tokens) {
  Decoder::Stream stream(decoder);
  std::string out;
  for (const std::string& token : tokens) stream.Push(token, &out);
  stream.Finish(&out);
  return out;
}

TEST(Decoder, LlamaStripsOneSpaceAtTheBeginOnly) {
  const Decoder decoder(Llama());
  EXPECT_EQ(Decode(decoder, {"\u2581\u2581Hi", "\u2581you"}), " Hi you");
  EXPECT_EQ(Decode(decoder, {}), "");
}

TEST(Decoder, ByteRunsAreOneTextOrNone) {
  const Decoder decoder(Llama());
  Decoder::Stream stream(decoder);
  std::string out;
  for (const char* byte : {"<0xF0>", "<0x9F>", "<0x98>", "<0x80>"}) stream.Push(byte, &out);
  EXPECT_EQ(out, "");
  EXPECT_TRUE(stream.holds_back());
  stream.Push("x", &out);
  EXPECT_EQ(out, "😀x");
  EXPECT_EQ(Decode(decoder, {"<0xF0>", "<0x9F>", "a"}), "\uFFFD\uFFFDa");
  EXPECT_EQ(Decode(decoder, {"a", "<0xC3>"}), "a\uFFFD");
}

TEST(Decoder, WordsOfWordPiecesAndSuffixes) {
  const Decoder pieces({decode::WordPiece{"##", true}});
  EXPECT_EQ(Decode(pieces, {"do", "##g", "s", "!", "do", "n't"}), "dog s! don't");
  const Decoder suffixes({decode::Bpe{"</w>"}});
  EXPECT_EQ(Decode(suffixes, {"do", "g</w>", "s</w>"}), "dog s");
}

TEST(Decoder, EveryDeltaIsValidAndFinal) {
  const char* pool[] = {"\u2581", "\u2581a", "b",   "<0xC3>", "<0xA9>",
                        "<0xFF>", " ",       "##c", "é</w>",  "\u0120x"};
  const std::vector<DecoderStep> chains[] = {
      Llama(),
      {decode::Metaspace{"\u2581", true}},
      {decode::WordPiece{}},
      {decode::Bpe{"</w>"}},
      {decode::ByteLevel{}, decode::Strip{" ", 1, 2}},
      {decode::Fuse{}, decode::Replace{TextPattern(std::string("ab")), "x"}},
      {decode::Join{}}};
  std::mt19937 rng(3);
  for (const auto& chain : chains) {
    const Decoder decoder(chain);
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::string> tokens(rng() % 8);
      for (auto& token : tokens) token = pool[rng() % std::size(pool)];
      Decoder::Stream stream(decoder);
      std::string out;
      for (const auto& token : tokens) {
        stream.Push(token, &out);
        ASSERT_TRUE(utf8::IsValid(out));
      }
      stream.Finish(&out);
      ASSERT_FALSE(stream.holds_back());
      std::string again;  // the stream is as new
      for (const auto& token : tokens) stream.Push(token, &again);
      stream.Finish(&again);
      ASSERT_EQ(out, again);
    }
  }
}

}  // namespace
}  // namespace vivace
