#include "engine/prefault.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <vector>

#include "engine/arena.h"

namespace vivace {
namespace {

constexpr size_t kLayers = 4;
constexpr size_t kBlockBytes = 64 << 10;
constexpr int64_t kBlocks = 4096;  // 256 MiB a layer, 1 GiB in all

class PrefaultTest : public testing::Test {
 protected:
  PrefaultTest() : arena(*Arena::Map(kLayers * kBlockBytes * kBlocks, "a test")) {
    area = {arena.bytes().data(), kLayers, kBlockBytes, kBlocks};
  }

  bool Resident(size_t layer, int64_t block) {
    std::byte* at = area.data + (layer * kBlocks + static_cast<size_t>(block)) * kBlockBytes;
    unsigned char present = 0;
    EXPECT_EQ(::mincore(at, 1, &present), 0);
    return present & 1;
  }
  static void WaitFor(const Prefault& prefault, int64_t blocks) {
    for (int i = 0; i < 20'000 && prefault.ready_blocks() < blocks; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_GE(prefault.ready_blocks(), blocks);
  }

  Arena arena;
  PrefaultArea area;
};

TEST_F(PrefaultTest, KeepsAheadOfUseAndNoFurther) {
  constexpr int64_t kAhead = Prefault::kAheadBytes / (kLayers * kBlockBytes);  // 1024 blocks
  Prefault prefault(area);
  WaitFor(prefault, kAhead);
  if (prefault.ready_blocks() == kBlocks) GTEST_SKIP() << "this system cannot populate pages";
  for (size_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(Resident(layer, 0));
    EXPECT_TRUE(Resident(layer, kAhead - 1));
    EXPECT_FALSE(Resident(layer, kBlocks - 1));
  }
  prefault.Reach(1'000);
  WaitFor(prefault, 1'000 + kAhead);
  for (size_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(Resident(layer, 1'000 + kAhead - 1));
    EXPECT_FALSE(Resident(layer, kBlocks - 1));
  }
  prefault.Reach(kBlocks);
  WaitFor(prefault, kBlocks);
  for (size_t layer = 0; layer < kLayers; ++layer) EXPECT_TRUE(Resident(layer, kBlocks - 1));
}

TEST_F(PrefaultTest, ContentsStay) {
  for (size_t layer = 0; layer < kLayers; ++layer) {
    area.data[layer * kBlocks * kBlockBytes + 5] = std::byte{42};
  }
  Prefault prefault(area);
  WaitFor(prefault, 1);
  for (size_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_EQ(area.data[layer * kBlocks * kBlockBytes + 5], std::byte{42});
  }
}

TEST_F(PrefaultTest, SmallAndEmptyAreasEnd) {
  area.num_blocks = 3;
  {
    Prefault small(area);
    WaitFor(small, 3);
    small.Reach(3);
  }
  area.num_blocks = 0;
  {
    Prefault empty(area);
    empty.Reach(0);
  }
}

}  // namespace
}  // namespace vivace
