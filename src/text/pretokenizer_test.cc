#include "text/pretokenizer.h"

#include <gmock/gmock.h>

#include <random>
#include <string>
#include <vector>

#include "text/regex.h"
#include "text/text_testing.h"

namespace vivace {
namespace {

using ::testing::ElementsAre;
using namespace std::string_view_literals;

std::vector<std::string> Pieces(Pretokenizer kind, std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = PieceEnd(kind, text, pos);
    if (end <= pos || end > text.size()) {
      ADD_FAILURE() << "no progress at " << pos;
      break;
    }
    pieces.emplace_back(text.substr(pos, end - pos));
    pos = end;
  }
  return pieces;
}

TEST(Pretokenizer, AsTheOracle) {
  const auto cases = testing::GoldenCases();
  for (const auto& row : cases.at("pieces").as_array()) {
    const std::string text(row.at("text").as_string());
    for (const auto& [name, kind] :
         {std::pair("gpt-2", Pretokenizer::kGpt2), std::pair("smollm", Pretokenizer::kSmolLm),
          std::pair("llama-bpe", Pretokenizer::kLlama3),
          std::pair("qwen2", Pretokenizer::kQwen2)}) {
      std::vector<int64_t> lengths, wanted;
      for (const auto& piece : Pieces(kind, text)) {
        lengths.push_back(static_cast<int64_t>(piece.size()));
      }
      for (const auto& length : row.at(name).as_array()) wanted.push_back(length.as_int64());
      EXPECT_EQ(lengths, wanted) << name << ": " << ::testing::PrintToString(text);
    }
  }
}

TEST(Pretokenizer, Gpt2) {
  EXPECT_THAT(Pieces(Pretokenizer::kGpt2, "I'll  DON'T x1 \n\ny  "),
              ElementsAre("I", "'ll", " ", " DON", "'", "T", " x", "1", " \n", "\n", "y", "  "));
}

TEST(Pretokenizer, SmolLmCutsAtNumbersFirst) {
  // The spaces before a number are the end of a text to the pattern, so they stay together.
  EXPECT_THAT(Pieces(Pretokenizer::kSmolLm, "a   12 b"), ElementsAre("a", "   ", "1", "2", " b"));
  EXPECT_THAT(Pieces(Pretokenizer::kSmolLm, " \n 1"), ElementsAre(" \n ", "1"));
}

TEST(Pretokenizer, Llama3AndQwen2DifferInNumbersOnly) {
  EXPECT_THAT(Pieces(Pretokenizer::kLlama3, "A'LL 12345\r\n\n  x.\n\"q"),
              ElementsAre("A", "'LL", " ", "123", "45", "\r\n\n", " ", " x", ".\n", "\"q"));
  EXPECT_THAT(Pieces(Pretokenizer::kQwen2, "123"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(Pieces(Pretokenizer::kLlama3, "'\u017fa"), ElementsAre("'\u017f", "a"));
}

TEST(Pretokenizer, Patterns) { EXPECT_EQ(PretokenizerByPattern(R"(\s+)"), std::nullopt); }

TEST(Pretokenizer, AnyBytesAreTiled) {
  std::mt19937 rng(2);
  const std::string_view alphabet = "aA1 \n\r'sl.\x80\xC2\xA0\xCC\x81\xE2\x80\xF0\x9F\xFF\0"sv;
  for (int round = 0; round < 20000; ++round) {
    std::string text(rng() % 24, '\0');
    for (char& c : text) c = alphabet[rng() % alphabet.size()];
    for (const auto kind : {Pretokenizer::kGpt2, Pretokenizer::kSmolLm, Pretokenizer::kLlama3,
                            Pretokenizer::kQwen2, Pretokenizer::kO200k, Pretokenizer::kTekken}) {
      std::string joined;
      for (const auto& piece : Pieces(kind, text)) joined += piece;
      ASSERT_EQ(joined, text);
    }
  }
}

// Two independent readings of each pattern: its scanner, and the pattern itself.
TEST(Pretokenizer, ScannersAgreeWithTheirPatterns) {
  const std::string_view units[] = {"a", "B",    "'s",     "'LL",  "'\u017f", "1",      "½",
                                    " ", "  ",   "\n",     "\r\n", "\t",      "\u00a0", "!",
                                    "/", ".",    "\u0301", "漢",   "ǅ",       "\u02b0", "é",
                                    "É", "🙂", "\u200d", "_",    "'",       "Σ",      "ſ"};
  std::mt19937 rng(8);
  for (const KnownPattern& known : KnownPatterns()) {
    const auto regex = Regex::Compile(known.pattern);
    ASSERT_TRUE(regex) << regex.error().message;
    Regex::Matcher matcher(**regex);
    for (int round = 0; round < 5000; ++round) {
      std::string text;
      for (size_t count = rng() % 12; count > 0; --count) text += units[rng() % std::size(units)];
      matcher.Reset(text);
      size_t pos = 0;
      while (const auto match = matcher.Next()) {
        ASSERT_EQ(match->begin, pos) << ::testing::PrintToString(text);
        pos = match->end;
        ASSERT_EQ(PieceEnd(known.kind, text, match->begin), pos)
            << known.pattern << " on " << ::testing::PrintToString(text);
      }
      ASSERT_EQ(pos, text.size());
    }
  }
}

}  // namespace
}  // namespace vivace
