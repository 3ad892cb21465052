// Datasets that are made: random, shared prefixes, conversations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/utf8.h"
#include "load/datasets/dataset.h"
#include "load/datasets/lengths.h"
#include "load/testing/fake_tokenizer.h"

namespace vivace::load {
namespace {

using testing::BrokenTokenizer;
using testing::FakeTokenizer;
using ::testing::HasSubstr;

Workload Made(const DatasetOptions& options, TokenCounter* counter) {
  auto workload = MakeWorkload(options, counter);
  EXPECT_TRUE(workload.has_value()) << workload.error().message;
  return workload ? std::move(*workload) : Workload{};
}

std::string Refused(const DatasetOptions& options, TokenCounter* counter = nullptr) {
  const auto workload = MakeWorkload(options, counter);
  EXPECT_FALSE(workload.has_value());
  return workload ? "" : workload.error().message;
}

const std::string& Text(const PlannedRequest& request) {
  return std::get<std::string>(request.prompt);
}

TEST(RandomDataset, IsExactInTheServersTokens) {
  for (const char* name : {"random", "random-words"}) {
    for (bool bos : {false, true}) {
      FakeTokenizer tokenizer(bos);
      const Workload w =
          Made({.name = name, .num_prompts = 40, .input_len = 100, .output_len = 7}, &tokenizer);
      ASSERT_EQ(w.requests.size(), 40u);
      std::set<std::string> texts;
      for (const PlannedRequest& r : w.requests) {
        EXPECT_EQ(tokenizer.Encode(Text(r))->size(), 100u) << name;
        EXPECT_EQ(r.prompt_tokens, 100);
        EXPECT_EQ(r.output_tokens, 7);
        EXPECT_LT(r.at_s, 0);
        EXPECT_TRUE(utf8::IsValid(Text(r)));
        EXPECT_EQ(Text(r).find_first_of("<>|"), std::string::npos);
        EXPECT_NE(Text(r).front(), ' ');  // servers trim it
        EXPECT_NE(Text(r).back(), ' ');
        texts.insert(Text(r));
      }
      EXPECT_EQ(texts.size(), 40u);
      EXPECT_EQ(w.name,
                std::string(name == std::string("random") ? "random" : "random words") + " 100/7");
    }
  }
}

TEST(RandomDataset, TakesFewCallsAPrompt) {
  FakeTokenizer tokenizer;
  Made({.name = "random", .num_prompts = 50, .input_len = 256}, &tokenizer);
  EXPECT_LT(tokenizer.calls, 50 * 12);
}

TEST(RandomDataset, SeedDecides) {
  FakeTokenizer tokenizer;
  DatasetOptions options = {.num_prompts = 5, .seed = 3, .input_len = 20};
  const Workload first = Made(options, &tokenizer), again = Made(options, &tokenizer);
  options.seed = 4;
  const Workload other = Made(options, &tokenizer);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(Text(first.requests[i]), Text(again.requests[i]));
    EXPECT_NE(Text(first.requests[i]), Text(other.requests[i]));
  }
  EXPECT_EQ(first.seed, 3u);
}

TEST(RandomDataset, TokenIdsKeepTheirFirst) {
  FakeTokenizer tokenizer(/*bos=*/true);
  const Workload w = Made({.num_prompts = 3, .input_len = 30, .token_ids = true}, &tokenizer);
  for (const PlannedRequest& r : w.requests) {
    const auto& ids = std::get<PromptIds>(r.prompt);
    EXPECT_EQ(ids.size(), 30u);
    EXPECT_EQ(ids[0], 0);  // BOS: sent as ids, no server adds it
  }
  EXPECT_THAT(Refused({.token_ids = true}), HasSubstr("need the server's tokenizer"));
}

TEST(RandomDataset, ChatCountsTheTemplateWhereItIsKnown) {
  FakeTokenizer known(true, 12);
  const Workload w = Made({.num_prompts = 2, .input_len = 50, .chat = true}, &known);
  for (const PlannedRequest& r : w.requests) {
    const auto& messages = std::get<Messages>(r.prompt);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages[0].role, "user");
    EXPECT_EQ(known.Encode(messages[0].content)->size(), 1 + 38u);
    EXPECT_EQ(r.prompt_tokens, 50);
  }
  FakeTokenizer unknown(true);
  const Workload without = Made({.num_prompts = 1, .input_len = 50, .chat = true}, &unknown);
  EXPECT_EQ(without.requests[0].prompt_tokens, 50);  // a guess, for servers that do not tell
  EXPECT_THAT(without.name, HasSubstr("without the chat template"));
}

TEST(RandomDataset, WithoutATokenizerSaysSo) {
  const Workload w = Made({.num_prompts = 2, .input_len = 10}, nullptr);
  EXPECT_THAT(w.name, HasSubstr("lengths approximate"));
  EXPECT_EQ(w.requests[0].prompt_tokens, 10);
  const std::string& text = Text(w.requests[0]);
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 9);
}

TEST(RandomDataset, ATokenizersRefusalIsHandedOn) {
  BrokenTokenizer broken;
  EXPECT_EQ(Refused({.num_prompts = 1}, &broken), "the server has no /tokenize");
}

TEST(RandomDataset, Presets) {
  FakeTokenizer tokenizer;
  const Workload prefill = Made({.name = "prefill-heavy", .num_prompts = 1}, &tokenizer);
  EXPECT_EQ(prefill.requests[0].prompt_tokens, 768);
  EXPECT_EQ(prefill.requests[0].output_tokens, 128);
  const Workload decode = Made({.name = "decode-heavy", .num_prompts = 1}, &tokenizer);
  EXPECT_EQ(decode.requests[0].prompt_tokens, 128);
  EXPECT_EQ(decode.requests[0].output_tokens, 768);
}

TEST(SharedPrefix, GroupsShareTheirBeginning) {
  FakeTokenizer tokenizer;
  const Workload w = Made({.name = "shared-prefix",
                           .num_prompts = 6,
                           .input_len = 20,
                           .prefix_len = 40,
                           .num_prefixes = 2},
                          &tokenizer);
  for (const PlannedRequest& r : w.requests) EXPECT_EQ(r.prompt_tokens, 60);
  const auto shared = [&](size_t a, size_t b) {
    const auto x = *tokenizer.Encode(Text(w.requests[a]));
    const auto y = *tokenizer.Encode(Text(w.requests[b]));
    size_t same = 0;
    while (same < x.size() && x[same] == y[same]) ++same;
    return same;
  };
  EXPECT_GE(shared(0, 2), 40u);  // of one group
  EXPECT_LT(shared(0, 2), 60u);
  EXPECT_LT(shared(0, 1), 40u);
}

TEST(MultiTurn, TurnsOfAConversationComeTogether) {
  FakeTokenizer tokenizer;
  const Workload w =
      Made({.name = "multi-turn", .num_prompts = 7, .input_len = 15, .turns = 3, .chat = true},
           &tokenizer);
  std::vector<int32_t> conversations;
  for (const PlannedRequest& r : w.requests) conversations.push_back(r.conversation);
  EXPECT_EQ(conversations, (std::vector<int32_t>{0, 0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(w.requests[1].prompt_tokens, 0);  // depends on the answer before it
  const Workload random =
      Made({.name = "random", .num_prompts = 4, .input_len = 5, .turns = 2}, &tokenizer);
  EXPECT_EQ(random.requests[3].conversation, 1);
}

TEST(Lengths, AreDrawnAsAskedFor) {
  DatasetOptions options = {.input_len = 1000, .output_len = 100, .input_len_std = 50};
  double sum = 0, squares = 0;
  for (const Lengths& l : DrawLengths(options, 4000)) {
    sum += l.input;
    squares += static_cast<double>(l.input) * l.input;
    EXPECT_EQ(l.output, 100);
  }
  EXPECT_NEAR(sum / 4000, 1000, 3);
  EXPECT_NEAR(std::sqrt(squares / 4000 - sum / 4000 * sum / 4000), 50, 2.5);

  options = {.input_len = 10, .output_len = 4, .range_ratio = 0.5};
  std::set<int32_t> inputs, outputs;
  for (const Lengths& l : DrawLengths(options, 2000))
    inputs.insert(l.input), outputs.insert(l.output);
  EXPECT_EQ(*inputs.begin(), 5);
  EXPECT_EQ(*inputs.rbegin(), 15);
  EXPECT_EQ(inputs.size(), 11u);
  EXPECT_EQ(*outputs.begin(), 2);
  EXPECT_EQ(*outputs.rbegin(), 6);
  // A wide deviation never asks for nothing.
  options = {.input_len = 2, .output_len = 2, .output_len_std = 100};
  for (const Lengths& l : DrawLengths(options, 500)) EXPECT_GE(l.output, 1);
}

TEST(Datasets, RefuseWhatCannotBe) {
  EXPECT_THAT(Refused({.name = "wikipedia"}), HasSubstr("'wikipedia'; there are random,"));
  EXPECT_THAT(Refused({.name = "sharegpt"}), HasSubstr("name it with --dataset-path"));
  EXPECT_THAT(Refused({.num_prompts = 0}), HasSubstr("--num-prompts is 0; give 1 to"));
  EXPECT_THAT(Refused({.num_prompts = 1'000'001}), HasSubstr("--num-prompts"));
  EXPECT_THAT(Refused({.input_len = 0}), HasSubstr("--random-input-len"));
  EXPECT_THAT(Refused({.output_len = (1 << 20) + 1}), HasSubstr("--random-output-len"));
  EXPECT_THAT(Refused({.range_ratio = 1.5}), HasSubstr("--random-range-ratio"));
  EXPECT_THAT(Refused({.input_len_std = 1, .range_ratio = 0.1}), HasSubstr("not both"));
  EXPECT_THAT(Refused({.turns = 0}), HasSubstr("--turns"));
  EXPECT_THAT(Refused({.input_len_std = std::nan("")}), HasSubstr("--input-len-std"));
}

}  // namespace
}  // namespace vivace::load
