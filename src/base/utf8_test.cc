#include "base/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace vivace::utf8 {
namespace {

TEST(Utf8, EveryScalarValueRoundTrips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    Append(c, &text);
    const Decoded decoded = Decode(text, 0);
    ASSERT_TRUE(decoded.valid) << static_cast<uint32_t>(c);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Utf8, RejectsOverlongSurrogateAndTooLarge) {
  for (const std::string_view bad :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5", "\x80", "\xFF"}) {
    EXPECT_FALSE(IsValid(bad));
  }
}

// The rows of the WHATWG/Unicode "maximal subpart" practice, as Python's errors="replace" does it.
TEST(Utf8, RepairsByMaximalSubparts) {
  const std::string r(kReplacementBytes);
  EXPECT_EQ(Repair("\xF0\x9F\x98"), r);          // cut: one
  EXPECT_EQ(Repair("\xF0\x9Fx"), r + "x");       // one for the prefix
  EXPECT_EQ(Repair("\xE0\x80\x80"), r + r + r);  // E0 cannot be followed by 80
  EXPECT_EQ(Repair("\xED\xA0\x80"), r + r + r);  // surrogate: no prefix is right
  EXPECT_EQ(Repair("a\xC3(\xE2\x82z"), "a" + r + "(" + r + "z");
  EXPECT_EQ(Repair("\xF4\x90\x80"), r + r + r);
  EXPECT_EQ(Repair("ok \xE2\x82\xAC"), "ok \xE2\x82\xAC");
}

TEST(Utf8, AppendRepairedStopsOnlyBeforeACutCharacter) {
  std::string out;
  EXPECT_EQ(AppendRepaired("ab\xF0\x9F\x98", &out), 2u);
  EXPECT_EQ(out, "ab");
  out.clear();
  EXPECT_EQ(AppendRepaired("ab\xF0\x9F\x98\x80\xFF", &out), 7u);
  EXPECT_EQ(out, "ab\xF0\x9F\x98\x80\xEF\xBF\xBD");
}

TEST(Utf8, AnyBytesRepairToValidTextAndInPartsToo) {
  std::mt19937 rng(1);
  const std::string_view alphabet = "a\x80\xBF\xC3\xE0\xE2\xED\xF0\xF4\xFF\x9F\x98";
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(rng() % 12, '\0');
    for (char& c : bytes) c = alphabet[rng() % alphabet.size()];
    const std::string whole = Repair(bytes);
    ASSERT_TRUE(IsValid(whole));
    std::string pending, joined;
    for (const char c : bytes) {
      pending.push_back(c);
      pending.erase(0, AppendRepaired(pending, &joined));
      ASSERT_LE(pending.size(), 3u);
    }
    if (!pending.empty()) joined += kReplacementBytes;
    ASSERT_EQ(joined, whole);
  }
}

}  // namespace
}  // namespace vivace::utf8
