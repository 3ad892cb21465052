#include "server/json/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/json/strict_json.h"

namespace vivace::server {
namespace {

TEST(JsonWriter, PutsCommasByItself) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.KeyInt("a", -5);
  w.Key("b");
  w.BeginArray();
  w.Null();
  w.Bool(true);
  w.BeginObject();
  w.EndObject();
  w.Float(-0.5f);
  w.EndArray();
  w.KeyString("c", "x\"\\\n\x01é");
  w.KeyNull("d");
  w.EndObject();
  EXPECT_EQ(out, R"({"a":-5,"b":[null,true,{},-0.5],"c":"x\"\\\n\u0001é","d":null})");
}

TEST(JsonWriter, NumbersReadBackTheSame) {
  for (const float value : {0.0f, -0.1f, -9999.0f, -1e-30f, 3.4e38f, -12.345678f}) {
    std::string out;
    JsonWriter(&out).Float(value);
    const auto parsed = ParseStrictJson(out);
    ASSERT_TRUE(parsed) << out;
    EXPECT_EQ(static_cast<float>(parsed->to_number<double>()), value) << out;
  }
  std::string out;
  JsonWriter(&out).Int(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(out, "-9223372036854775808");
}

TEST(JsonWriter, EveryByteMakesValidJson) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'a', static_cast<char>(byte), 'b'};
    std::string out;
    JsonWriter(&out).String(text);
    const auto parsed = ParseStrictJson(out);
    ASSERT_TRUE(parsed) << byte << ' ' << out;
    if (byte < 0x80) {
      EXPECT_EQ(std::string(parsed->as_string()), text);
    }
  }
}

}  // namespace
}  // namespace vivace::server
