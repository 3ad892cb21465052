#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>

#include "base/limits.h"

namespace vivace::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::byte> FileOf(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::vector<std::byte> bytes(sizeof length + header.size() + data_bytes);
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, header.data(), header.size());
  return bytes;
}

std::string ReasonOf(std::span<const std::byte> bytes) {
  auto file = SafetensorsFile::Parse(bytes, "t.safetensors");
  if (file) return "accepted";
  EXPECT_THAT(file.error().message, ::testing::StartsWith("t.safetensors: "));
  EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
  return file.error().reason;
}

std::string ReasonOf(std::string_view header, size_t data_bytes) {
  return ReasonOf(FileOf(header, data_bytes));
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const auto bytes = FileOf(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[16,16]}}   )",
      16);
  auto file = SafetensorsFile::Parse(bytes, "t.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 3u);
  const SafetensorsTensor* b = file->FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_THAT(b->shape, ::testing::ElementsAre(2, 3));
  EXPECT_EQ(b->type->dtype, DType::kBF16);
  EXPECT_EQ(b->data.size(), 12u);
  EXPECT_TRUE(file->FindTensor("a")->shape.empty());
  EXPECT_FALSE(file->FindTensor("none")->type->dtype);
  EXPECT_EQ(file->FindTensor("c"), nullptr);
  EXPECT_EQ(file->metadata()[0].second, "pt");
}

TEST(Safetensors, UnescapesNames) {
  const auto bytes = FileOf(R"({"a\"\u00e9":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  auto file = SafetensorsFile::Parse(bytes, "t.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[0].name, "a\"\u00e9");
}

TEST(SafetensorsRefuses, Headers) {
  EXPECT_EQ(ReasonOf(std::span<const std::byte>()), "truncated");
  EXPECT_EQ(ReasonOf(std::vector<std::byte>(7)), "truncated");
  EXPECT_EQ(ReasonOf("", 8), "bad_json");
  EXPECT_EQ(ReasonOf(" {}", 0), "bad_json");
  EXPECT_EQ(ReasonOf("[1,2]", 0), "bad_json");
  EXPECT_EQ(ReasonOf("{", 0), "bad_json");
  EXPECT_EQ(ReasonOf("{} x", 0), "bad_json");
  EXPECT_EQ(ReasonOf("{}{}", 0), "bad_json");
  EXPECT_EQ(ReasonOf(R"({"a":1})", 0), "bad_json");
  EXPECT_EQ(ReasonOf("{\"\xFF\":{}}", 0), "bad_json");
  EXPECT_EQ(ReasonOf("{}", 0), "accepted");
  for (const uint64_t length :
       {uint64_t{1} << 63, UINT64_MAX, uint64_t{9}, limits::kMaxSafetensorsHeaderBytes + 1}) {
    auto bytes = FileOf("{}      ", 0);
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_EQ(ReasonOf(bytes), "header_limit") << length;
  }
}

TEST(SafetensorsRefuses, Nesting) {
  const auto nested = [](size_t depth) {
    // The outermost object counts as one.
    return R"({"a":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(ReasonOf(nested(limits::kMaxSafetensorsDepth), 0), "bad_json");  // not an object
  EXPECT_EQ(ReasonOf(nested(limits::kMaxSafetensorsDepth + 1), 0), "nesting_limit");
  EXPECT_EQ(ReasonOf(nested(100'000), 0), "nesting_limit");
  EXPECT_EQ(ReasonOf("{\"a\":" + std::string(100'000, '{'), 0), "bad_json");
}

TEST(SafetensorsRefuses, Entries) {
  struct Case {
    std::string_view reason;
    std::string_view entry;
  };
  // Each beside 16 bytes of data.
  const Case cases[] = {
      {"accepted", R"("dtype":"F32","shape":[2,2],"data_offsets":[0,16])"},
      {"accepted", R"("dtype":"F4","shape":[32],"data_offsets":[0,16],"new":[{"x":null}])"},
      {"bad_dtype", R"("dtype":"F33","shape":[4],"data_offsets":[0,16])"},
      {"bad_dtype", R"("dtype":7,"shape":[4],"data_offsets":[0,16])"},
      {"bad_dtype", R"("shape":[4],"data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F32","data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F32","shape":4,"data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F32","shape":["4"],"data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F32","shape":[[4]],"data_offsets":[0,16])"},
      {"bad_shape", R"("dtype":"F4","shape":[31],"data_offsets":[0,16])"},
      {"dims_limit", R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,16])"},
      {"accepted", R"("dtype":"F32","shape":[1,1,1,1,1,1,1,4],"data_offsets":[0,16])"},
      {"size_overflow", R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16])"},
      {"size_overflow", R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"},
      {"bad_offsets", R"("dtype":"F32","shape":[4])"},
      {"bad_offsets", R"("dtype":"F32","shape":[4],"data_offsets":[16])"},
      {"bad_offsets", R"("dtype":"F32","shape":[4],"data_offsets":[0,16,16])"},
      {"bad_offsets", R"("dtype":"F32","shape":[4],"data_offsets":[-16,0])"},
      {"bad_offsets", R"("dtype":"F32","shape":[4],"data_offsets":[0,1.6e1])"},
      {"bad_offsets",
       R"("dtype":"F32","shape":[4],"data_offsets":[18446744073709551616,18446744073709551632])"},
      {"bad_offsets", R"("dtype":"F32","shape":[4],"data_offsets":[16,0])"},
      {"bad_offsets", R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"},
      {"tensor_out_of_file", R"("dtype":"F32","shape":[5],"data_offsets":[0,20])"},
      {"bad_offsets", R"("dtype":"F32","shape":[3],"data_offsets":[0,12])"},  // leaves 4 bytes
      {"bad_offsets", R"("dtype":"F32","shape":[3],"data_offsets":[4,16])"},  // a hole before
      {"duplicate_key", R"("dtype":"F32","dtype":"I32","shape":[4],"data_offsets":[0,16])"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ReasonOf("{\"a\":{" + std::string(c.entry) + "}}", 16), c.reason) << c.entry;
  }
}

TEST(SafetensorsRefuses, DuplicatesOverlapsAndMetadata) {
  const std::string first = R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
  const auto second = [](std::string_view name, int begin, int end) {
    return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name,
                       end - begin, begin, end);
  };
  EXPECT_EQ(ReasonOf("{" + first + "," + second("b", 8, 16) + "}", 16), "accepted");
  EXPECT_EQ(ReasonOf("{" + first + "," + second("a", 8, 16) + "}", 16), "duplicate_tensor");
  EXPECT_EQ(ReasonOf("{" + first + "," + second("b", 0, 8) + "}", 8), "tensor_overlap");
  EXPECT_EQ(ReasonOf("{" + first + "," + second("b", 4, 12) + "}", 12), "tensor_overlap");
  EXPECT_EQ(ReasonOf(R"({"__metadata__":{"x":1}})", 0), "bad_metadata");
  EXPECT_EQ(ReasonOf(R"({"__metadata__":{"x":{"y":1}}})", 0), "bad_metadata");
  EXPECT_EQ(ReasonOf(R"({"__metadata__":{"x":"1","x":"2"}})", 0), "duplicate_key");
  EXPECT_EQ(ReasonOf(R"({"__metadata__":{},"__metadata__":{}})", 0), "duplicate_key");
}

// Processor time of opening a file of `tensors` tensors, the least of a few tries.
double OpenSeconds(int tensors) {
  std::string header = "{";
  for (int i = 0; i < tensors; ++i) {
    header +=
        fmt::format(R"({}"layer.{}.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                    i == 0 ? "" : ",", i, i, i + 1);
  }
  header += "}";
  const auto bytes = FileOf(header, static_cast<size_t>(tensors));
  double least = 1e9;
  for (int run = 0; run < 5; ++run) {
    const std::clock_t start = std::clock();
    EXPECT_EQ(ReasonOf(bytes), "accepted");
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

// A few sorts of 16 times as many: some 20 times the work; a scan for each tensor would be 256.
TEST(Safetensors, ManyTensorsAreNotQuadratic) {
  EXPECT_LT(OpenSeconds(32'000), 80 * OpenSeconds(2'000));
}

TEST(SafetensorsRefuses, MutationsWithoutHarm) {
  const auto whole = FileOf(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[8,12]}})",
      12);
  std::mt19937_64 random(20260101);
  int accepted = 0;
  for (int i = 0; i < 5'000; ++i) {
    auto bytes = whole;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const std::vector<std::byte> exact(bytes);  // so that a sanitizer sees the end
    accepted += ReasonOf(exact) == "accepted";
  }
  EXPECT_GT(accepted, 0);  // some hit only data or names
  EXPECT_LT(accepted, 4'000);
}

}  // namespace
}  // namespace vivace::formats
