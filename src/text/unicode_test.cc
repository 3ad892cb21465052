#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/text_testing.h"
#include "text/unicode_class.h"

namespace vivace::unicode {
namespace {

int Count(Property property) {
  int count = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) count += (Properties(c) & property) != 0;
  return count;
}

// The sizes of Unicode 16's categories (kNumeric: of Unicode 17), and \s of Hugging Face's engine.
TEST(Unicode, CategorySizes) {
  EXPECT_EQ(Count(kSpace), 25);
  EXPECT_EQ(Count(kNumber), 1911);
  EXPECT_EQ(Count(kNumeric), 1924);
  EXPECT_EQ(Count(kLetter), 141'028);
  EXPECT_EQ(Count(kMark), 2501);
}

// Both tables have categories: the same ones.
TEST(Unicode, PropertiesAreTheClassesCategories) {
  for (const auto& [property, name] :
       {std::pair(kLetter, "L"), std::pair(kNumber, "N"), std::pair(kMark, "M")}) {
    const uint32_t mask = CategoryMask(name);
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      ASSERT_EQ((Properties(c) & property) != 0, (mask >> CategoryOf(c) & 1) != 0)
          << name << " at " << static_cast<uint32_t>(c);
    }
  }
}

TEST(Unicode, TheSpacesThatPeopleGetWrong) {
  for (const char32_t c : {0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x202F, 0x3000}) {
    EXPECT_TRUE(Properties(c) & kSpace) << static_cast<uint32_t>(c);
  }
  for (const char32_t c : {0x1C, 0x1F, 0x180E, 0x200B, 0x2060, 0xFEFF}) {
    EXPECT_FALSE(Properties(c) & kSpace) << static_cast<uint32_t>(c);
  }
}

TEST(Unicode, NothingIsKnownOfWhatIsNoCodePoint) {
  EXPECT_EQ(Properties(0xD800), 0);
  EXPECT_EQ(Properties(0x110000), 0);
  EXPECT_EQ(Properties(0xFFFFFFFF), 0);
}

TEST(Nfc, AsTheOracle) {
  const auto cases = vivace::testing::GoldenCases();
  const auto& rows = cases.at("nfc").as_array();
  ASSERT_GT(rows.size(), 100u);
  for (const auto& row : rows) {
    const std::string text(row.at(0).as_string());
    EXPECT_TRUE(MayChangeInNfc(text));
    EXPECT_EQ(ToNfc(text), std::string(row.at(1).as_string()));
  }
}

TEST(Nfc, ChangesNothingTwice) {
  const auto cases = vivace::testing::GoldenCases();
  for (const auto& row : cases.at("pieces").as_array()) {
    const std::string once = ToNfc(std::string(row.at("text").as_string()));
    EXPECT_EQ(ToNfc(once), once);
  }
}

TEST(Nfc, OrdersMarksAndComposesWhatIsNotBlocked) {
  EXPECT_EQ(ToNfc("e\u0301"), "\u00e9");
  EXPECT_EQ(ToNfc("a\u0323\u0302"), "\u1ead");  // both compose, in canonical order
  EXPECT_EQ(ToNfc("a\u0302\u0323"), "\u1ead");  // whatever the order they came in
  EXPECT_EQ(ToNfc("a\u05ae\u0300"), "\u00e0\u05ae");
  EXPECT_EQ(ToNfc("a\u0305\u0301"), "a\u0305\u0301");  // blocked: a mark of the same class between
  EXPECT_EQ(ToNfc("\u0301a"), "\u0301a");
  EXPECT_EQ(ToNfc("\u212b"), "\u00c5");        // singleton
  EXPECT_EQ(ToNfc("\u0958"), "\u0915\u093c");  // composition exclusion
  EXPECT_EQ(ToNfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(ToNfc("\uac00\u11a8"), "\uac01");
  EXPECT_EQ(ToNfc("\uac00\u11a7"), "\uac00\u11a7");  // not a final consonant
}

TEST(Nfc, LeavesInvalidBytesAlone) {
  EXPECT_EQ(ToNfc("\xFF"), "\xFF");
  EXPECT_EQ(ToNfc("e\xCC\xFF\u0301"), "e\xCC\xFF\u0301");  // the mark has no starter
  EXPECT_EQ(ToNfc("\xC3\u0301"
                  "e\u0301\xF0\x9F"),
            "\xC3\u0301\u00e9\xF0\x9F");
}

}  // namespace
}  // namespace vivace::unicode
