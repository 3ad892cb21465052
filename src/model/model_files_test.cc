// Whole files: the corpus of bad models, random damage, and the real model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "formats/tiny_llama.h"
#include "model/describe.h"
#include "model/loaded_model.h"
#include "support/paths.h"

namespace vivace::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Refused by the tokenizer, which is read from the same file later.
constexpr std::string_view kTokenizerReasons[] = {"bad_merge", "bad_byte_token"};

std::string WantedReason(const boost::json::value& c) {
  if (c.at("expect").as_string() == "accept") return "";
  const std::string reason(c.at("reason").as_string());
  const bool later = std::ranges::find(kTokenizerReasons, reason) != std::end(kTokenizerReasons);
  return later ? "" : reason;
}

TEST(BadModels, GetTheManifestsVerdict) {
  const fs::path corpus = fs::path(vivace::testing::SourceDir()) / "../shared/cases/bad";
  std::ifstream manifest(corpus / "manifest.json");
  if (!manifest) GTEST_SKIP() << "the corpus is not on this machine: " << corpus;
  const auto document =
      boost::json::parse(std::string(std::istreambuf_iterator<char>(manifest), {}));
  int checked = 0;
  for (const auto& c : document.at("cases").as_array()) {
    const std::string name(c.at("name").as_string());
    if (!name.ends_with(".gguf")) continue;
    const std::string path = (corpus / name).string();
    auto model = OpenModel(path);
    EXPECT_EQ(model ? "" : model.error().reason, WantedReason(c)) << name;
    if (!model) {
      EXPECT_THAT(model.error().message, ::testing::StartsWith(path + ": "));
    }
    ++checked;
  }
  EXPECT_GE(checked, 40);
}

// Reads everything a loader would read of a model that passed.
void TouchAll(const ModelFile& model) {
  std::byte sum{};
  const auto touch = [&](const WeightSpec& weight) {
    if (!weight.present()) return;
    const auto view = model.Weight(weight);
    ASSERT_TRUE(view) << view.error().message;
    const DTypeInfo& info = Info(view->dtype);
    const auto bytes = static_cast<size_t>(RowBytes(info, view->cols) * view->rows);
    for (size_t i = 0; i < bytes; ++i) sum ^= view->data[i];
  };
  const ModelSpec& spec = model.spec();
  touch(spec.embedding);
  touch(spec.final_norm.weight);
  touch(spec.lm_head.weight);
  for (const LayerSpec& layer : spec.layers) {
    touch(layer.attention.q.weight);
    touch(layer.attention.k.weight);
    touch(layer.attention.o.weight);
    touch(layer.mlp.dense.down.weight);
  }
  const auto tokens = model.gguf()->GetStrings("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens);
  for (const std::string_view token : *tokens) {
    for (const char c : token) sum ^= static_cast<std::byte>(c);
  }
  volatile std::byte keep = sum;
  (void)keep;
}

// One random injury: bytes changed, a length field moved by one, a piece copied elsewhere, a cut.
void Injure(std::vector<std::byte>& bytes, size_t header, std::mt19937_64& random) {
  const auto at = [&](size_t size) { return random() % (header - size); };
  switch (random() % 5) {
    case 0:
      bytes[at(1)] = static_cast<std::byte>(random());
      return;
    case 1:
      bytes[at(1)] ^= static_cast<std::byte>(1u << random() % 8);
      return;
    case 2: {
      const size_t position = at(8);
      uint64_t value;
      std::memcpy(&value, bytes.data() + position, sizeof value);
      value += random() % 2 == 0 ? 1 : UINT64_MAX;
      std::memcpy(bytes.data() + position, &value, sizeof value);
      return;
    }
    case 3: {
      const size_t size = 1 + random() % 32;
      std::memmove(bytes.data() + at(size), bytes.data() + at(size), size);
      return;
    }
    default:
      if (random() % 4 == 0) bytes.resize(header + random() % (bytes.size() - header));
  }
}

TEST(DamagedModels, NeverCrash) {
  formats::TinyLlamaOptions options{
      .layers = 1, .hidden = 8, .heads = 2, .kv_heads = 1, .ffn = 8, .biases = true};
  const auto whole = formats::MakeTinyLlama(options).Build();
  auto parsed = formats::GgufFile::Parse(whole, "t.gguf");
  ASSERT_TRUE(parsed);
  const auto header = static_cast<size_t>(parsed->tensors()[0].data.data() - whole.data());
  std::mt19937_64 random(3);
  int opened = 0;
  constexpr int kRuns = 6'000;
  for (int run = 0; run < kRuns; ++run) {
    auto bytes = whole;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) Injure(bytes, header, random);
    const std::vector<std::byte> exact(bytes);  // so that a sanitizer sees the end
    auto file = formats::GgufFile::Parse(exact, "t.gguf");
    if (!file) continue;
    auto model = CheckModel(std::move(*file));
    if (!model) continue;
    ++opened;
    TouchAll(*model);
  }
  // Most injuries hit the vocabulary's text and are harmless here; many must be noticed.
  EXPECT_GT(opened, kRuns / 100);
  EXPECT_LT(opened, kRuns * 9 / 10);
}

// ---- files on disk ------------------------------------------------------------------------------

class ModelOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "vivace_model_files_test.gguf";
    ASSERT_TRUE(formats::MakeTinyLlama().WriteFile(path_));
  }
  void TearDown() override { fs::remove(path_); }
  std::string path_;
};

TEST_F(ModelOnDisk, WeightsOutliveReleaseAndMoves) {
  auto opened = OpenModel(path_);
  ASSERT_TRUE(opened) << opened.error().message;
  const ModelFile model = std::move(*opened);
  const WeightSpec& weight = model.spec().layers[0].mlp.dense.up.weight;
  const auto view = *model.Weight(weight);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 32, 0u);
  const size_t size = size_t{64} * 128 * 4;
  const std::vector<std::byte> before(view.data, view.data + size);
  model.Prefetch(weight);
  model.Release(weight);
  EXPECT_EQ(std::memcmp(view.data, before.data(), size), 0);
  EXPECT_TRUE(model.CheckUnchanged());
}

TEST_F(ModelOnDisk, NoticesThatTheFileGrew) {
  auto model = OpenModel(path_);
  ASSERT_TRUE(model);
  std::ofstream(path_, std::ios::binary | std::ios::app) << "x";
  EXPECT_EQ(model->CheckUnchanged().error().reason, "file_changed");
}

TEST_F(ModelOnDisk, IsDescribed) {
  auto d = Describe(path_);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_FALSE(d->problem);
  EXPECT_EQ(d->format, "GGUF v3");
  EXPECT_EQ(d->tensors.size(), 20u);
  EXPECT_EQ(d->types.size(), 1u);
  EXPECT_EQ(d->types[0].tensors, 20u);
  const auto summary = std::ranges::find(d->summary, "heads", &MetadataFact::key);
  ASSERT_NE(summary, d->summary.end());
  EXPECT_EQ(summary->value, "4 query, 2 key/value, 16 wide");
  const auto tokens = std::ranges::find(d->metadata, "tokenizer.ggml.tokens", &MetadataFact::key);
  ASSERT_NE(tokens, d->metadata.end());
  EXPECT_EQ(tokens->type, "array of string");
  EXPECT_THAT(tokens->value, ::testing::StartsWith("264 items: [<|endoftext|>, "));
}

TEST_F(ModelOnDisk, IsDescribedEvenIfItCannotBeServed) {
  auto writer = formats::MakeTinyLlama();
  writer.SetString("general.architecture", "nosuch");
  ASSERT_TRUE(writer.WriteFile(path_));
  auto d = Describe(path_);
  ASSERT_TRUE(d);
  ASSERT_TRUE(d->problem);
  EXPECT_EQ(d->problem->reason, "unknown_architecture");
  EXPECT_TRUE(d->summary.empty());
  EXPECT_EQ(d->tensors.size(), 20u);
}

// ---- the real model -----------------------------------------------------------------------------

const std::string kRealModel =
    vivace::testing::SourceDir() + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";

TEST(RealModel, Opens) {
  if (!fs::exists(kRealModel))
    GTEST_SKIP() << "no model here (./dev setup gets it): " << kRealModel;
  auto model = OpenModel(kRealModel);
  ASSERT_TRUE(model) << model.error().message;
  const ModelSpec& spec = model->spec();
  EXPECT_EQ(spec.layers.size(), 30u);
  EXPECT_EQ(spec.vocab, 49152);
  EXPECT_EQ(spec.hidden, 576);
  EXPECT_EQ(spec.context, 8192);
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.layers[0].attention.rope.theta, 100000.0f);
  EXPECT_EQ(model->parameters(), 134'515'008u);
}

// Bug case 7.2: a cut download, and one byte short.
TEST(RealModel, CutIsRefused) {
  if (!fs::exists(kRealModel))
    GTEST_SKIP() << "no model here (./dev setup gets it): " << kRealModel;
  auto mapped = MappedFile::Open(kRealModel);
  ASSERT_TRUE(mapped);
  const auto bytes = mapped->bytes();
  for (const size_t size : {bytes.size() / 2, bytes.size() - 1}) {
    auto file = formats::GgufFile::Parse(bytes.first(size), "cut.gguf");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().reason, "tensor_out_of_file");
    EXPECT_FALSE(file.error().field.empty());
  }
  for (const size_t size : {size_t{100}, size_t{500'000}, size_t{1'700'000}}) {
    auto file = formats::GgufFile::Parse(bytes.first(size), "cut.gguf");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().reason, "truncated");
  }
}

}  // namespace
}  // namespace vivace::model
