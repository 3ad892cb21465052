#include "server/access/file_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

namespace vivace::server {
namespace {

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2'000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

std::string NewFile(const std::string& name, const std::string& text) {
  const std::string file = ::testing::TempDir() + "file_watch_test_" + name;
  std::ofstream(file) << text;
  return file;
}

TEST(FileWatch, TellsOfAFileThatChangesAndOfOneThatIsReplaced) {
  const std::string file = NewFile("changes", "a");
  std::atomic<int> loads{0};
  FileWatch watch({{{file}, true, [&] { ++loads; }}}, /*interval_ms=*/2);
  // One change may be seen as several where the writer is interrupted.
  const auto tells_of = [&](const std::function<void()>& change) {
    const int before = loads;
    change();
    return Eventually([&] { return loads > before; });
  };
  EXPECT_TRUE(tells_of([] { NewFile("changes", "longer"); }));
  EXPECT_TRUE(tells_of([&] { std::filesystem::rename(NewFile("other", "longer"), file); }));
  EXPECT_TRUE(tells_of([&] { std::filesystem::remove(file); }));
}

TEST(FileWatch, LeavesAloneWhatIsNotPolledUntilAsked) {
  const std::string file = NewFile("asked", "a");
  const std::string other = NewFile("polled", "a");
  std::atomic<int> loads{0}, polled{0};
  FileWatch watch({{{file}, false, [&] { ++loads; }}, {{other}, true, [&] { ++polled; }}}, 2);
  NewFile("asked", "longer");
  NewFile("polled", "longer");
  ASSERT_TRUE(Eventually([&] { return polled > 0; }));
  EXPECT_EQ(loads, 0);
  const int before = polled;
  watch.ReloadAll();
  EXPECT_TRUE(Eventually([&] { return loads == 1 && polled > before; }));
}

}  // namespace
}  // namespace vivace::server
