#include "base/json_text.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace vivace {
namespace {

TEST(JsonText, EscapesWhatJsonAsksFor) {
  EXPECT_EQ(JsonQuoted(""), R"("")");
  EXPECT_EQ(JsonQuoted("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
  EXPECT_EQ(JsonQuoted(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
}

TEST(JsonText, KeepsUtf8) {
  EXPECT_EQ(JsonQuoted("é€😀"), "\"é€😀\"");
  EXPECT_EQ(JsonQuoted("\xF4\x8F\xBF\xBF"), "\"\xF4\x8F\xBF\xBF\"");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(JsonQuoted("\xC0\x80"), '"' + bad + bad + '"');            // overlong
  EXPECT_EQ(JsonQuoted("\xED\xA0\x80"), '"' + bad + bad + bad + '"');  // surrogate
  EXPECT_EQ(JsonQuoted("\xF4\x90\x80\x80"), '"' + bad + bad + bad + bad + '"');
  EXPECT_EQ(JsonQuoted("\xE2\x82"), '"' + bad + '"');  // cut
  EXPECT_EQ(JsonQuoted("\xFFz"), '"' + bad + "z\"");
}

TEST(JsonText, AnyTwoBytesParseBack) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b), 'x'};
      boost::system::error_code error;
      const boost::json::value value = boost::json::parse(JsonQuoted(text), error);
      ASSERT_FALSE(error) << a << " " << b;
      if (a < 0x80 && b < 0x80) {
        ASSERT_EQ(value.as_string(), text);
      }
    }
  }
}

}  // namespace
}  // namespace vivace
