#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cmath>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"

namespace vivace::log {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kStamp = 1'706'702'400'123'000'000;  // 2024-01-31T12:00:00.123Z

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    CloseRead();
    close(ends_[1]);
  }
  int write_end() const { return ends_[1]; }
  void CloseRead() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  // All that is there now.
  std::string Read() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = read(ends_[0], buffer, sizeof buffer)) > 0;) all.append(buffer, n);
    return all;
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(LogLine, TextIsTimeLevelMessageAndFields) {
  EXPECT_EQ(FormatLine(Format::kText, Level::kInfo, kStamp, "listening",
                       {{"host", "127.0.0.1"}, {"port", 8000}, {"tls", false}, {"load", 0.5}}),
            "2024-01-31T12:00:00.123Z info  listening host=127.0.0.1 port=8000 tls=false load=0.5");
}

TEST(LogLine, TextQuotesWhatCouldForgeALine) {
  const std::string line =
      FormatLine(Format::kText, Level::kWarn, kStamp, "bad",
                 {{"a", "x\n2024 error forged"}, {"b", "k=v"}, {"c", ""}, {"d", "say \"hi\""}});
  EXPECT_THAT(line, EndsWith(R"(a="x\n2024 error forged" b="k=v" c="" d="say \"hi\"")"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(LogLine, JsonParsesAndKeepsTypes) {
  const std::string line = FormatLine(
      Format::kJson, Level::kError, kStamp, "it \"failed\"",
      {{"s", std::string("\xFF\n")}, {"i", -3}, {"u", ~0ull}, {"nan", std::nan("")}, {"b", true}});
  const boost::json::object value = boost::json::parse(line).as_object();
  EXPECT_EQ(value.at("time"), "2024-01-31T12:00:00.123Z");
  EXPECT_EQ(value.at("level"), "error");
  EXPECT_EQ(value.at("message"), "it \"failed\"");
  EXPECT_EQ(value.at("s"), "\xEF\xBF\xBD\n");
  EXPECT_EQ(value.at("i"), -3);
  EXPECT_EQ(value.at("u"), ~0ull);
  EXPECT_TRUE(value.at("nan").is_string());
  EXPECT_EQ(value.at("b"), true);
}

TEST(LogLine, FieldIsCutOnePastTheLimit) {
  const std::string full(limits::kMaxLogFieldBytes, 'x');
  EXPECT_THAT(FormatLine(Format::kText, Level::kInfo, 0, "m", {{"f", full}}), EndsWith("x"));
  EXPECT_THAT(FormatLine(Format::kText, Level::kInfo, 0, "m", {{"f", full + "y"}}),
              EndsWith("x..."));
}

TEST(Logger, WritesInOrderAndFiltersByLevel) {
  Pipe pipe;
  Logger logger({.level = Level::kInfo, .fd = pipe.write_end()});
  logger.Write(Level::kDebug, "hidden");
  for (int i = 0; i < 100; ++i) logger.Write(Level::kInfo, "line", {{"i", i}});
  ASSERT_TRUE(logger.Flush(5'000));
  const std::string text = pipe.Read();
  EXPECT_EQ(text.find("hidden"), std::string::npos);
  size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = text.find(" i=" + std::to_string(i) + "\n", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_EQ(logger.dropped(), 0u);
}

TEST(Logger, ManyThreadsLoseAndTearNothing) {
  Pipe pipe;
  std::string text;
  {
    Logger logger({.fd = pipe.write_end(), .ring_lines = 1 << 12});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&logger, t] {
        for (int i = 0; i < 250; ++i) logger.Write(Level::kInfo, "m", {{"t", t}, {"i", i}});
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int wait = 0; wait < 200 && !logger.Flush(20); ++wait) text += pipe.Read();
    EXPECT_EQ(logger.dropped(), 0u);
  }
  text += pipe.Read();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1'000);
  for (int t = 0; t < 4; ++t) {
    EXPECT_THAT(text, HasSubstr(" m t=" + std::to_string(t) + " i=249\n"));
  }
}

TEST(Logger, FullPipeNeverBlocksTheCallerAndIsCounted) {
  Pipe pipe;
  const int64_t start = SteadyNanos();
  {
    Logger logger({.fd = pipe.write_end(), .ring_lines = 64});
    const std::string blob(1'000, 'x');
    for (int i = 0; i < 2'000; ++i) logger.Write(Level::kInfo, "m", {{"blob", blob}});
    EXPECT_GT(logger.dropped(), 1'000u);
    EXPECT_FALSE(logger.Flush(10));
    // The reader comes back: what was kept arrives, and so does word of what was not.
    std::string text;
    for (int wait = 0; wait < 200 && !logger.Flush(20); ++wait) text += pipe.Read();
    logger.Write(Level::kInfo, "after");
    ASSERT_TRUE(logger.Flush(5'000));
    for (int wait = 0; wait < 200 && text.find("log lines dropped") == text.npos; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      text += pipe.Read();
    }
    text += pipe.Read();
    EXPECT_NE(text.find("log lines dropped"), std::string::npos);
    EXPECT_NE(text.find(" after\n"), std::string::npos);
  }
  EXPECT_LT(SteadyNanos() - start, 10 * kNanosPerSecond);
}

TEST(Logger, ExitsWhileThePipeIsFull) {
  // Never closed: the writer that was given up on may still write while the program ends, and must
  // not find its descriptor's number in another test's hands.
  static Pipe& pipe = *new Pipe;
  const int64_t start = SteadyNanos();
  {
    Logger logger({.fd = pipe.write_end()});
    const std::string blob(2'000, 'x');
    for (int i = 0; i < 200; ++i) logger.Write(Level::kInfo, "m", {{"blob", blob}});
  }
  EXPECT_LT(SteadyNanos() - start, 3 * kNanosPerSecond);
}

TEST(Logger, DeadReaderCountsInsteadOfKilling) {
  Pipe pipe;
  pipe.CloseRead();
  Logger logger({.fd = pipe.write_end()});
  logger.Write(Level::kInfo, "to nobody");
  EXPECT_TRUE(logger.Flush(5'000));
  EXPECT_EQ(logger.dropped(), 1u);
}

TEST(Logger, DefaultCanBeReplaced) {
  Pipe pipe;
  Configure({.level = Level::kWarn, .format = Format::kJson, .fd = pipe.write_end()});
  Info("no");
  Warn("yes", {{"k", 1}});
  EXPECT_TRUE(Default().Flush(5'000));
  EXPECT_THAT(pipe.Read(), testing::AllOf(StartsWith("{\"time\""), HasSubstr("\"k\":1}\n")));
  Configure({});
}

TEST(Clock, SteadyNeverGoesBackAndWallIsAfter2023) {
  const int64_t before = SteadyNanos();
  EXPECT_LE(before, SteadyNanos());
  EXPECT_GT(WallSeconds(), 1'700'000'000);
}

}  // namespace
}  // namespace vivace::log
