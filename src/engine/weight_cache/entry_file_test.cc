// An entry is read back as it was written, or refused: whatever byte of it is wrong or missing.
#include "engine/weight_cache/entry_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "engine/testing/temp_folder.h"

namespace vivace::weight_cache {
namespace {

namespace fs = std::filesystem;

constexpr size_t kUsedHeaderBytes = 104;  // the rest of the header's page is zeros, never read
constexpr size_t kPayloadBytes = 2 * kChunkBytes + 64 * 100;

class EntryFileTest : public ::testing::Test {
 protected:
  EntryFileTest() : path_(folder_.path() + "/m-x86.weights"), payload_(kPayloadBytes) {
    std::mt19937_64 rng(5);
    for (std::byte& byte : payload_) byte = static_cast<std::byte>(rng());
    key_ = {.pack_version = 7,
            .layout = Layout::kX86,
            .source = {.size = 1, .modified_ns = 2, .changed_ns = 3, .inode = 4},
            .plan_digest = 9,
            .payload_bytes = kPayloadBytes};
  }

  Status Write() const { return WriteEntry(path_, key_, payload_, stop_); }
  // The reason of the refusal, or "".
  std::string Read(const EntryKey& key) {
    std::vector<std::byte> got(payload_.size());
    const Status read = ReadEntry(path_, key, got, pool_, {});
    if (!read) return read.error().reason;
    EXPECT_EQ(got, payload_);
    return "";
  }
  std::string Read() { return Read(key_); }

  std::vector<char> Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Replace(const std::vector<char>& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // Flips a bit in place.
  void Flip(size_t offset, int bit) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    char byte = 0;
    file.seekg(static_cast<std::streamoff>(offset)).get(byte);
    file.seekp(static_cast<std::streamoff>(offset)).put(static_cast<char>(byte ^ (1 << bit)));
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& at : fs::directory_iterator(folder_.path())) {
      names.push_back(at.path().filename().string());
    }
    return names;
  }

  const testing::TempFolder folder_;
  const std::string path_;
  std::vector<std::byte> payload_;
  EntryKey key_;
  std::atomic<bool> stop_{false};
  ThreadPool pool_{2};
};

TEST_F(EntryFileTest, ReadsWhatWasWritten) {
  EXPECT_EQ(Read(), "no_entry");
  ASSERT_TRUE(Write());
  EXPECT_EQ(Read(), "");
  EXPECT_EQ(fs::file_size(path_), kHeaderBytes + kPayloadBytes);
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(Files().size(), 1u) << "the temporary file is gone";
}

TEST_F(EntryFileTest, AnyBitOfTheHeaderMatters) {
  ASSERT_TRUE(Write());
  for (size_t offset = 0; offset < kUsedHeaderBytes; ++offset) {
    Flip(offset, static_cast<int>(offset % 8));
    EXPECT_NE(Read(), "") << "byte " << offset;
    Flip(offset, static_cast<int>(offset % 8));
  }
  EXPECT_EQ(Read(), "");
}

TEST_F(EntryFileTest, AnyByteOfThePayloadMatters) {
  ASSERT_TRUE(Write());
  for (const size_t at :
       {size_t{0}, kChunkBytes - 1, kChunkBytes, 2 * kChunkBytes + 77, kPayloadBytes - 1}) {
    Flip(kHeaderBytes + at, 3);
    EXPECT_EQ(Read(), "damaged") << at;
    Flip(kHeaderBytes + at, 3);
  }
  EXPECT_EQ(Read(), "");
}

TEST_F(EntryFileTest, CutOrGrownIsRefused) {
  ASSERT_TRUE(Write());
  const std::vector<char> whole = Bytes();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, kUsedHeaderBytes - 1, kUsedHeaderBytes,
                            kHeaderBytes - 1, kHeaderBytes, kHeaderBytes + 1,
                            kHeaderBytes + kChunkBytes, whole.size() - 1, whole.size() + 1}) {
    std::vector<char> changed = whole;
    changed.resize(size);
    Replace(changed);
    EXPECT_EQ(Read(), "damaged") << size;
  }
  Replace(std::vector<char>(whole.size()));
  EXPECT_EQ(Read(), "damaged") << "zeros, as a crash may leave them";
}

TEST_F(EntryFileTest, AnotherKeyIsRefused) {
  ASSERT_TRUE(Write());
  const auto reason = [&](auto&& change) {
    EntryKey key = key_;
    change(&key);
    return Read(key);
  };
  EXPECT_EQ(reason([](EntryKey* k) { k->source.size++; }), "other_source");
  EXPECT_EQ(reason([](EntryKey* k) { k->source.modified_ns++; }), "other_source");
  EXPECT_EQ(reason([](EntryKey* k) { k->source.changed_ns++; }), "other_source");
  EXPECT_EQ(reason([](EntryKey* k) { k->source.inode++; }), "other_source");
  EXPECT_EQ(reason([](EntryKey* k) { k->source.header_digest++; }), "other_source");
  EXPECT_EQ(reason([](EntryKey* k) { k->source.sample_digest++; }), "other_source");
  EXPECT_EQ(reason([](EntryKey* k) { k->pack_version++; }), "other_packing");
  EXPECT_EQ(reason([](EntryKey* k) { k->layout = Layout::kReference; }), "other_packing");
  EXPECT_EQ(reason([](EntryKey* k) { k->plan_digest++; }), "other_packing");
  EXPECT_EQ(reason([](EntryKey* k) { k->payload_bytes++; }), "other_packing");
}

TEST_F(EntryFileTest, OnlyAFileNobodyElseCanChange) {
  ASSERT_TRUE(Write());
  ASSERT_EQ(::chmod(path_.c_str(), 0620), 0);
  EXPECT_EQ(Read(), "unsafe_entry");
  ASSERT_EQ(::chmod(path_.c_str(), 0602), 0);
  EXPECT_EQ(Read(), "unsafe_entry");
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(Read(), "");
  fs::rename(path_, folder_.path() + "/elsewhere");
  fs::create_symlink(folder_.path() + "/elsewhere", path_);
  EXPECT_EQ(Read(), "io_error") << "a link";
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Read(), "unsafe_entry") << "a pipe, and nobody waits for it";
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(Read(), "unsafe_entry") << "a folder";
}

TEST_F(EntryFileTest, WritingFailsWithoutATrace) {
  stop_ = true;
  EXPECT_EQ(Write().error().reason, "stopped");
  stop_ = false;
  EXPECT_TRUE(Files().empty());
  EXPECT_EQ(WriteEntry(folder_.path() + "/none/m.weights", key_, payload_, stop_).error().reason,
            "io_error");

  // A disk that fills up, as far as a process can have one to itself.
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{kChunkBytes, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = Write();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason, "io_error");
  EXPECT_TRUE(Files().empty());
}

TEST_F(EntryFileTest, ADeadWritersFileIsTakenOverALivingOnesIsNot) {
  const std::string temp = path_ + ".tmp";
  std::ofstream(temp) << std::string(2 * kPayloadBytes, 'x');
  ASSERT_EQ(::chmod(temp.c_str(), 0600), 0);
  const int other = ::open(temp.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(Write().error().reason, "busy");
  EXPECT_EQ(Read(), "no_entry");
  ::close(other);
  EXPECT_TRUE(Write());
  EXPECT_EQ(Read(), "");
}

TEST_F(EntryFileTest, SeveralWritersLeaveOneWholeEntry) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> written{0};
    {
      std::vector<std::jthread> writers;
      for (int i = 0; i < 4; ++i) {
        writers.emplace_back([&] {
          const Status status = Write();
          if (status) {
            ++written;
          } else {
            EXPECT_EQ(status.error().reason, "busy") << status.error().message;
          }
        });
      }
    }
    EXPECT_GE(written, 1);
    EXPECT_EQ(Read(), "");
    EXPECT_EQ(Files().size(), 1u);
  }
}

}  // namespace
}  // namespace vivace::weight_cache
