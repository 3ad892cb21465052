#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/limits.h"
#include "formats/tiny_llama.h"

namespace vivace::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReasonOf(std::span<const std::byte> bytes) {
  auto file = GgufFile::Parse(bytes, "t.gguf");
  if (file) return "accepted";
  EXPECT_THAT(file.error().message, ::testing::StartsWith("t.gguf: "));
  EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
  return file.error().reason;
}

std::string ReasonOf(const GgufWriter& writer) { return ReasonOf(writer.Build()); }

// Raw little-endian bytes, for headers no writer would write.
class Raw {
 public:
  Raw& U32(uint32_t v) { return Put(&v, sizeof v); }
  Raw& U64(uint64_t v) { return Put(&v, sizeof v); }
  Raw& Text(std::string_view s) { return Put(s.data(), s.size()); }
  Raw& String(std::string_view s) { return U64(s.size()).Text(s); }
  Raw& Head(uint64_t tensors, uint64_t entries) {
    return Text("GGUF").U32(3).U64(tensors).U64(entries);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Raw& Put(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
    return *this;
  }
  std::vector<std::byte> bytes_;
};

GgufWriter OneTensor() {
  GgufWriter writer;
  writer.tensors.push_back({"t", 0, {4, 2}, std::vector<std::byte>(32)});
  return writer;
}

// ---- what is read -------------------------------------------------------------------------------

TEST(Gguf, ReadsMetadataAndTensors) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter writer = MakeTinyLlama();
    writer.version = version;
    const auto bytes = writer.Build();
    auto file = GgufFile::Parse(bytes, "t.gguf");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->version(), version);
    EXPECT_EQ(*file->GetString("general.architecture"), "llama");
    EXPECT_EQ(*file->GetInt("llama.context_length"), 256);
    EXPECT_FLOAT_EQ(static_cast<float>(*file->GetFloat("llama.rope.freq_base")), 10000.0f);
    EXPECT_FALSE(*file->GetBool("tokenizer.ggml.add_bos_token"));
    const GgufStrings tokens = *file->GetStrings("tokenizer.ggml.tokens");
    EXPECT_EQ(std::vector<std::string>(tokens.begin(), tokens.end()), MakeTinyVocabulary().tokens);
    EXPECT_EQ((*file->GetInts("tokenizer.ggml.token_type"))[0], 3);
    const GgufTensor* tensor = file->FindTensor("blk.1.attn_k.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_THAT(tensor->dims, ElementsAre(64, 32, 1, 1));
    EXPECT_EQ(tensor->data.size(), 64u * 32 * 4);
    const auto& source = writer.FindTensor("blk.1.attn_k.weight")->data;
    EXPECT_EQ(std::memcmp(tensor->data.data(), source.data(), source.size()), 0);
    EXPECT_EQ(file->FindTensor("blk.2.attn_k.weight"), nullptr);
  }
}

TEST(Gguf, ViewsSurviveAMove) {
  const auto bytes = MakeTinyLlama().Build();
  auto file = GgufFile::Parse(bytes, "t.gguf");
  ASSERT_TRUE(file);
  const GgufFile moved = std::move(*file);
  EXPECT_EQ(*moved.GetString("general.name"), "tiny llama");
}

TEST(Gguf, GettersCheckTypes) {
  GgufWriter writer;
  writer.SetU64("u64", 1ull << 40);
  writer.SetU64("huge", UINT64_MAX);
  writer.SetU32("u32", 7);
  writer.SetFloat("f", 1.5f);
  writer.SetString("s", "text");
  writer.SetString("latin1", "caf\xE9");
  writer.SetStrings("strings", std::vector<std::string>{"a", "", "ccc"});
  writer.SetStrings("bad strings", std::vector<std::string>{"a", "\xFF"});
  writer.SetFloats("floats", std::vector<float>{0.5f, -1.0f});
  const auto bytes = writer.Build();
  auto file = GgufFile::Parse(bytes, "t.gguf");
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->GetInt("u64"), 1ll << 40);
  EXPECT_EQ(*file->GetInt("huge"), INT64_MAX);  // saturates: out of any range
  EXPECT_EQ(*file->GetIntOr("absent", 3), 3);
  EXPECT_EQ(*file->GetStringOr("absent", "x"), "x");
  EXPECT_EQ((*file->GetFloats("floats"))[1], -1.0f);
  const GgufStrings strings = *file->GetStrings("strings");
  EXPECT_THAT(std::vector<std::string_view>(strings.begin(), strings.end()),
              ElementsAre("a", "", "ccc"));
  EXPECT_EQ(file->GetInt("absent").error().reason, "missing_key");
  EXPECT_THAT(file->GetInt("absent").error().message, HasSubstr("absent"));
  EXPECT_EQ(file->GetInt("s").error().reason, "wrong_type");
  EXPECT_EQ(file->GetIntOr("s", 3).error().reason, "wrong_type");
  EXPECT_EQ(file->GetInt("f").error().reason, "wrong_type");
  EXPECT_EQ(file->GetFloat("u32").error().reason, "wrong_type");
  EXPECT_EQ(file->GetBool("u32").error().reason, "wrong_type");
  EXPECT_EQ(file->GetString("strings").error().reason, "wrong_type");
  EXPECT_EQ(file->GetStrings("floats").error().reason, "wrong_type");
  EXPECT_EQ(file->GetInts("floats").error().reason, "wrong_type");
  EXPECT_EQ(file->GetFloats("strings").error().reason, "wrong_type");
  EXPECT_EQ(file->GetString("latin1").error().reason, "bad_utf8");
  EXPECT_EQ(file->GetStrings("bad strings").error().reason, "bad_utf8");
}

TEST(Gguf, KnowsTypesItCannotComputeWith) {
  GgufWriter writer;
  writer.tensors.push_back({"fp", 40, {64}, std::vector<std::byte>(36)});
  const auto bytes = writer.Build();
  auto file = GgufFile::Parse(bytes, "t.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[0].type->name, "NVFP4");
  EXPECT_FALSE(file->tensors()[0].type->dtype);
}

TEST(GgmlTypes, AgreeWithTheDTypeTable) {
  for (uint32_t id = 0; id < 64; ++id) {
    const GgmlType* type = FindGgmlType(id);
    if (!type || !type->dtype) continue;
    const DTypeInfo& info = Info(*type->dtype);
    EXPECT_EQ(type->name, info.name);
    EXPECT_EQ(static_cast<int32_t>(type->block_elems), info.block_elems) << type->name;
    EXPECT_EQ(static_cast<int32_t>(type->block_bytes), info.block_bytes) << type->name;
    EXPECT_EQ(GgmlTypeId(*type->dtype), id);
  }
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(GgufRefuses, HeadsThatLie) {
  EXPECT_EQ(ReasonOf(Raw().bytes()), "truncated");
  EXPECT_EQ(ReasonOf(Raw().Text("GGU").bytes()), "truncated");
  EXPECT_EQ(ReasonOf(Raw().Text("GGUF").bytes()), "truncated");
  EXPECT_EQ(ReasonOf(Raw().Text("GGML").U32(3).U64(0).U64(0).bytes()), "bad_magic");
  for (const uint32_t version : {0u, 1u, 4u, 99u, 0x03000000u}) {
    EXPECT_EQ(ReasonOf(Raw().Text("GGUF").U32(version).U64(0).U64(0).bytes()), "bad_version");
  }
  EXPECT_EQ(ReasonOf(Raw().Head(UINT64_MAX, UINT64_MAX).bytes()), "count_limit");
  EXPECT_EQ(ReasonOf(Raw().Head((1ull << 58) + 1, 0).bytes()), "count_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1ull << 63).bytes()), "count_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(0, limits::kMaxMetadataEntries + 1).bytes()), "count_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(0, limits::kMaxMetadataEntries).bytes()), "truncated");
  EXPECT_EQ(ReasonOf(Raw().Head(limits::kMaxTensors + 1, 0).bytes()), "count_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(limits::kMaxTensors, 0).bytes()), "truncated");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 0).bytes()), "accepted");
}

TEST(GgufRefuses, KeysAndStrings) {
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).U64(0x0000FFFFFFFFFFFF).bytes()), "string_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).U64(UINT64_MAX).bytes()), "string_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String("").U32(4).U32(1).bytes()), "bad_key");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String("\xFF\xFE").U32(4).U32(1).bytes()), "bad_key");
  const std::string longest(limits::kMaxNameBytes, 'k');
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String(longest).U32(4).U32(1).bytes()), "accepted");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String(longest + "k").U32(4).U32(1).bytes()), "string_limit");
  const uint64_t limit = limits::kMaxMetadataStringBytes;
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String("k").U32(8).U64(limit + 1).bytes()), "string_limit");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String("k").U32(8).U64(limit).bytes()), "truncated");
  EXPECT_EQ(ReasonOf(Raw().Head(0, 1).String("k").U32(8).String(std::string(limit, 'x')).bytes()),
            "accepted");
  Raw twice;
  twice.Head(0, 2).String("k").U32(4).U32(1).String("k").U32(4).U32(2);
  EXPECT_EQ(ReasonOf(twice.bytes()), "duplicate_key");
}

TEST(GgufRefuses, ValuesAndArrays) {
  const auto entry = [](uint32_t type) { return Raw().Head(0, 1).String("k").U32(type); };
  EXPECT_EQ(ReasonOf(entry(13).U64(0).bytes()), "bad_value_type");
  EXPECT_EQ(ReasonOf(entry(UINT32_MAX).U64(0).bytes()), "bad_value_type");
  EXPECT_EQ(ReasonOf(entry(7).Text("\x02").bytes()), "bad_bool");
  EXPECT_EQ(ReasonOf(entry(7).Text("\x01").bytes()), "accepted");
  EXPECT_EQ(ReasonOf(entry(9).U32(7).U64(2).Text("\x01\x03").bytes()), "bad_bool");
  EXPECT_EQ(ReasonOf(entry(9).U32(13).U64(0).bytes()), "bad_value_type");
  EXPECT_EQ(ReasonOf(entry(9).U32(8).U64(1ull << 61).bytes()), "array_limit");
  EXPECT_EQ(ReasonOf(entry(9).U32(10).U64(1ull << 61).bytes()), "array_limit");
  EXPECT_EQ(ReasonOf(entry(9).U32(0).U64(limits::kMaxMetadataArrayItems + 1).bytes()),
            "array_limit");
  EXPECT_EQ(ReasonOf(entry(9).U32(0).U64(limits::kMaxMetadataArrayItems).bytes()), "truncated");
  EXPECT_EQ(ReasonOf(entry(9).U32(8).U64(1).U64(UINT64_MAX).bytes()), "string_limit");
  // Arrays nested 100 000 deep: refused at the first, without recursion.
  Raw nested = entry(9);
  for (int i = 0; i < 100'000; ++i) nested.U32(9).U64(1);
  EXPECT_EQ(ReasonOf(nested.bytes()), "nesting_limit");
}

TEST(GgufRefuses, Alignments) {
  for (const uint32_t alignment : {0u, 1u, 3u, 4u, 48u, 1u << 21, 1u << 31, UINT32_MAX}) {
    GgufWriter writer;
    writer.SetU32("general.alignment", alignment);
    EXPECT_EQ(ReasonOf(writer), "bad_alignment") << alignment;
  }
  GgufWriter wrong;
  wrong.SetString("general.alignment", "32");
  EXPECT_EQ(ReasonOf(wrong), "wrong_type");
  for (const uint64_t alignment : {8u, 64u, 1u << 20}) {
    GgufWriter writer = OneTensor();
    writer.alignment = alignment;
    EXPECT_EQ(ReasonOf(writer), "accepted") << alignment;
  }
}

struct TensorCase {
  std::string_view reason;
  uint32_t rank;
  std::vector<uint64_t> dims;
  uint32_t type;
  uint64_t offset;
};

TEST(GgufRefuses, Tensors) {
  const TensorCase cases[] = {
      {"accepted", 1, {8}, 0, 0},
      {"dims_limit", 0, {}, 0, 0},
      {"dims_limit", 5, {1, 1, 1, 1, 8}, 0, 0},
      {"dims_limit", UINT32_MAX, {8}, 0, 0},
      {"zero_dim", 2, {0, 1}, 0, 0},
      {"zero_dim", 2, {8, 0}, 0, 0},
      {"bad_tensor_type", 1, {8}, 4, 0},
      {"bad_tensor_type", 1, {8}, 255, 0},
      {"bad_tensor_type", 1, {8}, UINT32_MAX, 0},
      {"row_not_blocks", 1, {8}, 3, 0},
      {"size_overflow", 2, {INT64_MAX, 2}, 0, 0},
      {"size_overflow", 2, {1ull << 32, 1ull << 32}, 0, 0},
      {"size_overflow", 4, {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16}, 0, 0},
      {"size_overflow", 1, {(1ull << 62) - 1}, 0, 0},
      {"size_overflow", 1, {1ull << 62}, 0, 0},
      {"tensor_out_of_file", 1, {17}, 0, 0},
      {"tensor_out_of_file", 1, {8}, 0, 64},
      {"tensor_out_of_file", 1, {8}, 0, 1ull << 40},
      {"tensor_out_of_file", 1, {8}, 0, UINT64_MAX - 31},
      {"offset_misaligned", 1, {4}, 0, 16},
  };
  for (const TensorCase& c : cases) {
    Raw raw;
    raw.Head(1, 0).String("t").U32(c.rank);
    for (const uint64_t dim : c.dims) raw.U64(dim);
    raw.U32(c.type).U64(c.offset);
    while (raw.bytes().size() % 32 != 0) raw.Text(std::string_view("\0", 1));
    raw.Text(std::string(64, 'd'));
    EXPECT_EQ(ReasonOf(raw.bytes()), c.reason)
        << "rank " << c.rank << ", type " << c.type << ", offset " << c.offset << ", dims "
        << ::testing::PrintToString(c.dims);
  }
}

TEST(GgufRefuses, TensorNamesAndOverlaps) {
  GgufWriter writer = OneTensor();
  writer.tensors[0].name = std::string(limits::kMaxTensorNameBytes, 'n');
  EXPECT_EQ(ReasonOf(writer), "accepted");
  writer.tensors[0].name += 'n';
  EXPECT_EQ(ReasonOf(writer), "string_limit");
  writer.tensors[0].name = "";
  EXPECT_EQ(ReasonOf(writer), "bad_tensor_name");
  writer.tensors[0].name = "\xC0\x80";
  EXPECT_EQ(ReasonOf(writer), "bad_tensor_name");
  writer = OneTensor();
  writer.tensors.push_back(writer.tensors[0]);
  EXPECT_EQ(ReasonOf(writer), "duplicate_tensor");

  const auto two = [](uint64_t first, uint64_t second) {
    Raw raw;
    raw.Head(2, 0).String("a").U32(1).U64(16).U32(0).U64(first);
    raw.String("b").U32(1).U64(8).U32(0).U64(second);
    while (raw.bytes().size() % 32 != 0) raw.Text(std::string_view("\0", 1));
    return raw.Text(std::string(128, 'd'));
  };
  EXPECT_EQ(ReasonOf(two(0, 64).bytes()), "accepted");
  EXPECT_EQ(ReasonOf(two(32, 0).bytes()), "accepted");
  EXPECT_EQ(ReasonOf(two(0, 32).bytes()), "tensor_overlap");
  EXPECT_EQ(ReasonOf(two(0, 0).bytes()), "tensor_overlap");
}

TEST(GgufRefuses, EveryCutOfAFile) {
  GgufWriter writer = MakeTinyLlama({.layers = 1, .hidden = 8, .heads = 2, .ffn = 8});
  const auto bytes = writer.Build();
  ASSERT_EQ(ReasonOf(bytes), "accepted");
  auto whole = GgufFile::Parse(bytes, "t.gguf");
  const auto header = static_cast<size_t>(whole->tensors()[0].data.data() - bytes.data());
  for (size_t size = 0; size < bytes.size(); size += size < header ? 1 : 61) {
    // A copy of exactly this size, so that a sanitizer sees any read past it.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    const std::string reason = ReasonOf(cut);
    ASSERT_TRUE(reason == "truncated" || reason == "tensor_out_of_file") << size << ": " << reason;
  }
}

TEST(Gguf, MessagesStayOneLine) {
  GgufWriter writer = OneTensor();
  writer.tensors[0].name = "evil\n\x1b[31m\u2028name";
  writer.tensors[0].data.resize(8);
  auto file = GgufFile::Parse(writer.Build(), "dir\n/t.gguf");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
  EXPECT_THAT(file.error().message, Not(HasSubstr("\x1b")));
  EXPECT_THAT(file.error().message, HasSubstr("evil\\x0a"));
}

TEST(Gguf, OpenNamesTheFile) {
  auto file = GgufFile::Open("no/such/model.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().reason, "not_found");
  EXPECT_THAT(file.error().message, HasSubstr("no/such/model.gguf"));
}

}  // namespace
}  // namespace vivace::formats
