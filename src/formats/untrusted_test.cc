#include "formats/untrusted.h"

#include <gtest/gtest.h>

#include "formats/byte_cursor.h"

namespace vivace::formats {
namespace {

TEST(Checked, SaysWhenItWraps) {
  EXPECT_EQ(CheckedAdd(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(1ull << 31, 1ull << 32), 1ull << 63);
  EXPECT_EQ(CheckedMul(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(CheckedAlignUp(1, 32), 32u);
  EXPECT_EQ(CheckedAlignUp(32, 32), 32u);
  EXPECT_EQ(CheckedAlignUp(UINT64_MAX - 3, 32), std::nullopt);
}

TEST(Printable, IsOneSafeLine) {
  EXPECT_EQ(Printable("plain \u00e9\u4e2d"), "plain \u00e9\u4e2d");
  EXPECT_EQ(Printable("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(Printable("\x1b[0m"), "\\x1b[0m");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\u0085\u2028"), "\\xc2\\x85\\xe2\\x80\\xa8");
  EXPECT_EQ(Printable("\u202e\u2069"), "\\xe2\\x80\\xae\\xe2\\x81\\xa9");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
}

TEST(ForTerminal, KeepsTextAndLeavesOutWhatATerminalObeys) {
  EXPECT_EQ(ForTerminal("a\n\tb \u00e9\u4e2d\u202f\u2065\U0001f600"),
            "a\n\tb \u00e9\u4e2d\u202f\u2065\U0001f600");
  EXPECT_EQ(ForTerminal("a\x1b[0m\r\x7f\x07z"), "a[0mz");
  EXPECT_EQ(ForTerminal("a\u0080\u009b31m\u009f\u00a0z"), "a31m\u00a0z");
  EXPECT_EQ(ForTerminal("\u2029\u202a\u202e\u202f\u2066\u2069\u206a"), "\u2029\u202f\u206a");
  EXPECT_EQ(ForTerminal("\x9b"
                        "31m"),
            "\ufffd31m");
}

TEST(ByteCursor, NeverLeavesTheBytes) {
  const std::byte bytes[6] = {std::byte{1}};
  ByteCursor cursor(bytes);
  EXPECT_EQ(cursor.Read<uint32_t>(), 1u);
  EXPECT_EQ(cursor.Read<uint32_t>(), std::nullopt);
  EXPECT_EQ(cursor.remaining(), 2u);  // a refused read does not move
  EXPECT_FALSE(cursor.Take(UINT64_MAX));
  EXPECT_TRUE(cursor.Take(2));
  EXPECT_TRUE(cursor.Take(0));
  EXPECT_FALSE(cursor.Take(1));
}

}  // namespace
}  // namespace vivace::formats
