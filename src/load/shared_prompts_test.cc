#include "load/shared_prompts.h"

#include <gtest/gtest.h>

namespace vivace::load {
namespace {

PlannedRequest Text(std::string text, int32_t tokens = 0) {
  return {.prompt = std::move(text), .prompt_tokens = tokens, .output_tokens = 10};
}

TEST(SharedPrompts, NothingAndAllAndSome) {
  EXPECT_EQ(SharedPrompts({}), 0);
  EXPECT_EQ(SharedPrompts({.requests = {Text("abcd"), Text("xbcd")}}), 0);
  EXPECT_EQ(SharedPrompts({.requests = {Text("abcd"), Text("abcd")}}), 0.5);
  // Whatever stands between them, two of three know a half of theirs.
  EXPECT_DOUBLE_EQ(SharedPrompts({.requests = {Text("ab__", 8), Text("zzzz", 8), Text("ab..", 8)}}),
                   4 / 24.);
}

TEST(SharedPrompts, IdsAndMessages) {
  PlannedRequest ids;
  ids.prompt = PromptIds{1, 2, 3, 4};
  PlannedRequest others;
  others.prompt = PromptIds{1, 2, 9, 9};
  EXPECT_EQ(SharedPrompts({.requests = {ids, others}}), 0.25);
  PlannedRequest chat;
  chat.prompt = Messages{{"system", "be short"}, {"user", "hello"}};
  EXPECT_EQ(SharedPrompts({.requests = {chat, chat}}), 0.5);
}

TEST(SharedPrompts, TurnsRepeatTheTurnsBefore) {
  Workload workload{.requests = {Text("a", 10), Text("b", 20)}};
  for (PlannedRequest& request : workload.requests) request.conversation = 3;
  EXPECT_DOUBLE_EQ(SharedPrompts(workload), 20 / 40.);  // 10 and their 10 answers, then 20 more
}

}  // namespace
}  // namespace vivace::load
