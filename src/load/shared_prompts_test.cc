#include "load/shared_prompts.h"

#include <gtest/gtest.h>

namespace vivace::load {
namespace {

PlannedRequest Text(std::string text, int32_t tokens = 0) {
  return {.prompt = std::move(text), .prompt_tokens = tokens, .output_tokens = 10};
}

double SharedOf(std::vector<PlannedRequest> requests) {
  Workload workload;
  workload.requests = std::move(requests);
  return SharedPrompts(workload);
}

TEST(SharedPrompts, NothingAndAllAndSome) {
  EXPECT_EQ(SharedOf({}), 0);
  EXPECT_EQ(SharedOf({Text("abcd"), Text("xbcd")}), 0);
  EXPECT_EQ(SharedOf({Text("abcd"), Text("abcd")}), 0.5);
  // Whatever stands between the two: the second of them has half of its prompt in the first.
  EXPECT_DOUBLE_EQ(SharedOf({Text("ab__", 8), Text("zzzz", 8), Text("ab..", 8)}), 4 / 24.);
}

TEST(SharedPrompts, IdsAndMessages) {
  PlannedRequest ids;
  ids.prompt = PromptIds{1, 2, 3, 4};
  PlannedRequest others;
  others.prompt = PromptIds{1, 2, 9, 9};
  EXPECT_EQ(SharedOf({ids, others}), 0.25);
  PlannedRequest chat;
  chat.prompt = Messages{{"system", "be short"}, {"user", "hello"}};
  EXPECT_EQ(SharedOf({chat, chat}), 0.5);
}

TEST(SharedPrompts, TurnsRepeatTheTurnsBefore) {
  std::vector<PlannedRequest> turns = {Text("a", 10), Text("b", 20)};
  for (PlannedRequest& turn : turns) turn.conversation = 3;
  EXPECT_DOUBLE_EQ(SharedOf(turns), 20 / 50.);  // 10 and the 10 of their answer stand in the second
}

}  // namespace
}  // namespace vivace::load
