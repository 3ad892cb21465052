#include "base/sse_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace vivace {
namespace {

TEST(SseReader, AnyCutGivesTheSameEvents) {
  const std::string stream =
      ": ping\n\ndata: {\"a\":1}\r\n\r\ndata:x\n\nevent: y\ndata: [DONE]\n\nrest";
  for (size_t step = 1; step <= stream.size(); ++step) {
    SseReader reader;
    std::vector<std::string> events;
    for (size_t i = 0; i < stream.size(); i += step) {
      EXPECT_TRUE(reader.Push(std::string_view(stream).substr(i, step),
                              [&](std::string_view data) { events.emplace_back(data); }));
    }
    EXPECT_EQ(events, (std::vector<std::string>{"{\"a\":1}", "x", "[DONE]"})) << step;
    EXPECT_EQ(reader.rest(), "rest");
  }
}

TEST(SseReader, BoundsALine) {
  SseReader reader;
  const std::string part(1 << 20, 'x');
  bool sound = true;
  for (int i = 0; i < 17; ++i) sound = reader.Push(part, [](std::string_view) {});
  EXPECT_FALSE(sound);
}

}  // namespace
}  // namespace vivace
