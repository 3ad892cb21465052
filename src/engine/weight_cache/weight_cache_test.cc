// The cache as an executor's load uses it: what is read back computes the same bits as what was
// packed, and a model file that changed is packed again.
#include "engine/weight_cache/weight_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "engine/testing/plan_driver.h"
#include "engine/testing/temp_folder.h"
#include "engine/testing/tiny_model.h"
#include "engine/weight_cache/entry_key.h"
#include "engine/weights.h"

namespace vivace::weight_cache {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = kNanosPerSecond;

class WeightCacheTest : public ::testing::Test {
 protected:
  void WriteModel(uint64_t seed) const {
    const formats::TinyLlamaOptions options{.hidden = 96,
                                            .heads = 6,
                                            .kv_heads = 2,
                                            .ffn = 160,
                                            .context = 256,
                                            .matrices = DType::kQ4_0,
                                            .embedding = DType::kQ8_0,
                                            .biases = true,
                                            .seed = seed};
    VIVACE_CHECK(formats::MakeTinyLlama(options).WriteFile(model_));
  }
  model::ModelFile Open() const {
    auto file = model::OpenModel(model_);
    VIVACE_CHECK(file.has_value());
    return std::move(*file);
  }
  // Until a further change of the file would show in its times.
  void Settle() const {
    while (!Settled(IdentityOf(Open()), WallNanos())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  Weights Load(Isa isa, bool cached = true) {
    EngineConfig config;
    if (cached) config.weight_cache = cache();
    auto weights = LoadWeights(config, Open(), kernels::GetBlockOps(isa), pool_, {});
    VIVACE_CHECK(weights.has_value());
    return std::move(*weights);
  }
  std::string cache() const { return folder_.path() + "/cache"; }
  size_t Entries() const {
    std::error_code none;
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(cache(), none), fs::directory_iterator()));
  }
  static bool SameBytes(Weights* a, Weights* b) {
    return std::ranges::equal(a->arena.bytes(), b->arena.bytes());
  }

  const testing::TempFolder folder_;
  const std::string model_ = folder_.path() + "/m.gguf";
  ThreadPool pool_{2};
};

TEST_F(WeightCacheTest, ASecondLoadReadsTheSameBytes) {
  WriteModel(1);
  Settle();
  for (const Isa isa : testing::Tiers()) {
    SCOPED_TRACE(Name(isa));
    Weights packed = Load(isa, /*cached=*/false);
    EXPECT_EQ(packed.writer, nullptr);
    Weights first = Load(isa);
    EXPECT_TRUE(SameBytes(&first, &packed));
    if (first.writer) first.writer->Wait();
    Weights second = Load(isa);
    EXPECT_EQ(second.writer, nullptr) << "nothing left to write: it was read";
    EXPECT_TRUE(SameBytes(&second, &packed));
    // And every weight lies where packing puts it.
    const auto offset = [](Weights* w, const void* at) {
      return static_cast<const std::byte*>(at) - w->arena.bytes().data();
    };
    EXPECT_EQ(offset(&second, second.embedding.data), offset(&packed, packed.embedding.data));
    EXPECT_EQ(offset(&second, second.layers[1].dense.down.bias),
              offset(&packed, packed.layers[1].dense.down.bias));
    EXPECT_EQ(offset(&second, second.final_norm.weight), offset(&packed, packed.final_norm.weight));
  }
  EXPECT_EQ(Entries(), 2u) << "the x86 tiers share one";
}

TEST_F(WeightCacheTest, LogitsAreThoseOfPackedWeights) {
  WriteModel(1);
  Settle();
  Load(BestIsa()).writer->Wait();
  EngineConfig config = testing::TestConfig(BestIsa());
  config.max_model_len = 256;
  const auto drawn = [&](const std::string& cache) {
    config.weight_cache = cache;
    const auto executor = testing::MakeExecutor(config, Open());
    testing::PlanDriver driver(executor.get());
    SamplingParams params;
    params.logprobs = 5;
    params.seed = 3;
    driver.Finish(driver.Add({1, 2, 3, 4, 5}, params), 40);
    std::vector<float> logprobs;
    for (const LogprobRow& row : driver[0].logprobs) logprobs.push_back(row.chosen.logprob);
    return std::pair(driver[0].output(), logprobs);
  };
  EXPECT_EQ(drawn(cache()), drawn(""));
}

TEST_F(WeightCacheTest, AChangedModelIsPackedAgain) {
  WriteModel(1);
  Settle();
  Load(BestIsa()).writer->Wait();
  struct stat before;
  ASSERT_EQ(::stat(model_.c_str(), &before), 0);
  // Other weights of the same shapes under the same name, with the old time put back.
  WriteModel(2);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, model_.c_str(), times, 0), 0);
  ASSERT_EQ(fs::file_size(model_), static_cast<uintmax_t>(before.st_size));
  Weights wanted = Load(BestIsa(), /*cached=*/false);
  Weights lately = Load(BestIsa());
  EXPECT_TRUE(SameBytes(&lately, &wanted));
  EXPECT_EQ(lately.writer, nullptr) << "changed a moment ago";
  Settle();
  Weights again = Load(BestIsa());
  ASSERT_NE(again.writer, nullptr);
  again.writer->Wait();
  EXPECT_TRUE(SameBytes(&again, &wanted));
  EXPECT_EQ(Entries(), 1u) << "the new entry took the old one's place";
  EXPECT_EQ(Load(BestIsa()).writer, nullptr);
}

TEST_F(WeightCacheTest, ADamagedEntryIsPackedAgainAndReplaced) {
  WriteModel(1);
  Settle();
  Load(BestIsa()).writer->Wait();
  const fs::path entry = fs::directory_iterator(cache())->path();
  Weights wanted = Load(BestIsa(), /*cached=*/false);
  // All of the payload has been read by the time the last byte turns out to be wrong.
  std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end).put('\x5a');
  file.close();
  Weights loaded = Load(BestIsa());
  EXPECT_TRUE(SameBytes(&loaded, &wanted));
  ASSERT_NE(loaded.writer, nullptr);
  loaded.writer->Wait();
  EXPECT_EQ(Load(BestIsa()).writer, nullptr);
}

TEST_F(WeightCacheTest, AFolderThatCannotBeWrittenIsNoMatter) {
  WriteModel(1);
  Settle();
  std::ofstream(cache()) << "a file where the folder should be";
  Weights wanted = Load(BestIsa(), /*cached=*/false);
  Weights loaded = Load(BestIsa());
  EXPECT_TRUE(SameBytes(&loaded, &wanted));
  ASSERT_NE(loaded.writer, nullptr);
  loaded.writer->Wait();
}

TEST_F(WeightCacheTest, IdentityIsOfTheBytesAsWell) {
  WriteModel(1);
  const SourceIdentity one = IdentityOf(Open());
  EXPECT_EQ(one.sample_digest, IdentityOf(Open()).sample_digest);
  WriteModel(2);
  const SourceIdentity two = IdentityOf(Open());
  EXPECT_EQ(one.size, two.size);
  EXPECT_NE(one.changed_ns, two.changed_ns);
  EXPECT_EQ(one.header_digest, two.header_digest);
  EXPECT_NE(one.sample_digest, two.sample_digest);
}

TEST(SettledTest, ATickAfterTheLastChange) {
  const auto settled = [](int64_t modified, int64_t changed) {
    return Settled({.modified_ns = modified * kSecond, .changed_ns = changed * kSecond},
                   1000 * kSecond);
  };
  EXPECT_TRUE(settled(900, 997));
  EXPECT_FALSE(settled(900, 998));
  EXPECT_FALSE(settled(999, 900));
  EXPECT_FALSE(settled(1000, 1000));
  EXPECT_TRUE(settled(5000, 900)) << "set by hand";
}

}  // namespace
}  // namespace vivace::weight_cache
