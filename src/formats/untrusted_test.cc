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
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
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
