// Datasets from users' files, and what is wrong with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/limits.h"
#include "load/datasets/dataset.h"
#include "load/testing/fake_tokenizer.h"

namespace vivace::load {
namespace {

using testing::FakeTokenizer;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  Files()
      : folder_(std::filesystem::temp_directory_path() /
                ("vivace_load_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }

  DatasetOptions Options(std::string name, std::string_view content) {
    const auto path = folder_ / "data.jsonl";
    std::ofstream(path, std::ios::binary) << content;
    return {.name = std::move(name), .path = path.string()};
  }

  Workload Made(const DatasetOptions& options, TokenCounter* counter = nullptr) {
    auto workload = MakeWorkload(options, counter);
    EXPECT_TRUE(workload.has_value()) << workload.error().message;
    return workload ? std::move(*workload) : Workload{};
  }

  std::string Refused(const DatasetOptions& options) {
    const auto workload = MakeWorkload(options, nullptr);
    EXPECT_FALSE(workload.has_value());
    return workload ? "" : workload.error().message;
  }

  std::filesystem::path folder_;
};

TEST_F(Files, WhatTheyHaveOfTheirOwnCannotBeAskedFor) {
  const std::pair<std::string_view, void (*)(DatasetOptions*)> asked[] = {
      {"--random-input-len", [](DatasetOptions* o) { o->input_len_given = true; }},
      {"--input-len-std", [](DatasetOptions* o) { o->input_len_std = 2; }},
      {"--random-prefix-len", [](DatasetOptions* o) { o->prefix_len = 8; }},
      {"--turns", [](DatasetOptions* o) { o->turns = 3; }}};
  for (const auto& [flag, ask] : asked) {
    DatasetOptions options = Options("jsonl", "{\"prompt\": \"a\"}\n");
    ask(&options);
    EXPECT_THAT(Refused(options), HasSubstr(flag));
  }
}

TEST_F(Files, JsonlInItsOrder) {
  FakeTokenizer tokenizer;
  const Workload w = Made(Options("jsonl", R"({"prompt": "the man", "output_len": 5}

{"prompt": [3, 4, 5], "max_tokens": 6}
{"prompt": "the world"})"),
                          &tokenizer);
  ASSERT_EQ(w.requests.size(), 3u);
  EXPECT_EQ(w.name, "data.jsonl");
  EXPECT_EQ(std::get<std::string>(w.requests[0].prompt), "the man");
  EXPECT_EQ(w.requests[0].prompt_tokens, 2);
  EXPECT_EQ(w.requests[0].output_tokens, 5);
  EXPECT_EQ(std::get<PromptIds>(w.requests[1].prompt), (PromptIds{3, 4, 5}));
  EXPECT_EQ(w.requests[1].prompt_tokens, 3);
  EXPECT_EQ(w.requests[2].output_tokens, 128);  // the default
}

TEST_F(Files, JsonlAsAnArrayWithMessagesAndTimes) {
  DatasetOptions options = Options("custom", R"([
  {"messages": [{"role": "system", "content": "Be \"short\", [please]"},
                {"role": "user", "content": "Hi"}], "timestamp": 1700000000000},
  {"prompt": "Hello", "timestamp": 1700000001500, "output_len": 9}
])");
  options.chat = true;
  options.output_len = 3;
  options.output_len_given = true;
  const Workload w = Made(options);
  ASSERT_EQ(w.requests.size(), 2u);
  EXPECT_EQ(std::get<Messages>(w.requests[0].prompt)[0].content, "Be \"short\", [please]");
  EXPECT_EQ(std::get<Messages>(w.requests[1].prompt)[0].content, "Hello");
  EXPECT_EQ(w.requests[0].at_s, 0);
  EXPECT_EQ(w.requests[1].at_s, 1.5);
  EXPECT_EQ(w.requests[1].output_tokens, 3);  // the user's wish goes first
}

TEST_F(Files, OnlyAsManyAsAskedForAreRead) {
  DatasetOptions options = Options("jsonl", "{\"prompt\": \"a\"}\nbroken\n");
  options.num_prompts = 1;
  EXPECT_EQ(Made(options).requests.size(), 1u);
}

struct BadLine {
  const char* content;
  const char* why;
};

TEST_F(Files, BrokenLinesAreNamed) {
  const BadLine kBad[] = {
      {"{\"prompt\": \"a\"}\n{\"prompt\": ", "data.jsonl, line 2: not JSON"},
      {"{\"prompt\": \"a\"}\n\n[1]\n", "line 3: not a JSON object"},
      {"{\"text\": \"a\"}", "line 1: give one of \"prompt\" and \"messages\""},
      {"{\"prompt\": 3}", "\"prompt\" is neither a text nor an array of token ids"},
      {"{\"prompt\": [1, -2]}", "\"prompt\" has -2, which is no token id"},
      {"{\"prompt\": [1, \"x\"]}", "which is no token id"},
      {"{\"prompt\": []}", "neither a text nor"},
      {"{\"prompt\": \"a\", \"output_len\": 0}", "\"output_len\" is 0; it may be 1 to 1048576"},
      {"{\"prompt\": \"a\", \"output_len\": 1e99}", "\"output_len\" is 1e+99"},
      {"{\"prompt\": \"a\", \"max_tokens\": 1.5}", "\"max_tokens\" is 1.5; give a whole number"},
      {"{\"prompt\": \"a\", \"max_tokens\": \"9\"}", "\"max_tokens\" is not a number"},
      {"{\"prompt\": \"a\", \"timestamp\": -1}", "\"timestamp\" is -1"},
      {"{\"prompt\": \"a\", \"timestamp\": 5}\n{\"prompt\": \"a\"}", "line 2: either all lines"},
      {"{\"prompt\": \"a\", \"timestamp\": 5}\n{\"prompt\": \"a\", \"timestamp\": 4}",
       "line 2: its \"timestamp\" is before"},
      {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
       "messages need a chat endpoint"},
      {"\n \n", "has no entries"},
      {"", "has no entries"},
      {"[\n{\"prompt\": \"a\"},\n{\"prompt\": \"b\"", "line 3: the array ends inside this entry"},
      {"[{\"prompt\": \"a\"},\n\"]", "line 2: the array ends inside this entry"},
      {"[]", "has no entries"},
      {"\x1f\x8b\x08\x00", "line 1: not JSON"},
  };
  for (const BadLine& bad : kBad) {
    EXPECT_THAT(Refused(Options("jsonl", bad.content)), HasSubstr(bad.why)) << bad.content;
  }
}

TEST_F(Files, DeepNestingIsRefusedAndNotFollowed) {
  const std::string deep = "{\"prompt\": " + std::string(100'000, '[') + "}";
  EXPECT_THAT(Refused(Options("jsonl", deep)), HasSubstr("line 1: not JSON"));
}

TEST_F(Files, ALineThatIsTooLong) {
  const std::string line =
      "{\"prompt\": \"" + std::string(limits::kMaxDatasetLineBytes, 'a') + "\"}";
  EXPECT_THAT(Refused(Options("jsonl", line)), HasSubstr("longer than 16777216 bytes"));
  EXPECT_THAT(Refused(Options("jsonl", "[" + line + "]")), HasSubstr("longer than"));
}

TEST_F(Files, MessagesThatAreNone) {
  DatasetOptions options = Options("jsonl", R"({"messages": [{"role": "user"}]})");
  options.chat = true;
  EXPECT_THAT(Refused(options), HasSubstr("message 1 has no \"role\" and \"content\""));
  options = Options("jsonl", R"({"messages": []})");
  options.chat = true;
  EXPECT_THAT(Refused(options), HasSubstr("\"messages\" is not an array of 1 to"));
  options = Options("jsonl", R"({"prompt": [1]})");
  options.chat = true;
  EXPECT_THAT(Refused(options), HasSubstr("token ids can't go to a chat endpoint"));
}

TEST_F(Files, NoFile) {
  EXPECT_FALSE(MakeWorkload({.name = "jsonl", .path = "/nowhere/x.jsonl"}, nullptr).has_value());
}

std::string Conversation(int prompt_words, int answer_words) {
  std::string text = "{\"id\": \"x\", \"conversations\": [{\"from\": \"human\", \"value\": \"";
  for (int i = 0; i < prompt_words; ++i) text += i == 0 ? "the" : " man";
  text += "\"}, {\"from\": \"gpt\", \"value\": \"";
  for (int i = 0; i < answer_words; ++i) text += i == 0 ? "the" : " man";
  return text + "\"}]}";
}

// vLLM's is_valid_sequence: at its limits and one past them.
TEST_F(Files, ShareGptFiltersAsVllmDoes) {
  FakeTokenizer tokenizer;
  const std::pair<int, int> kept[] = {{4, 4}, {1024, 1024}, {10, 20}};
  const std::pair<int, int> left[] = {{3, 10}, {10, 3}, {1025, 10}, {1024, 1025}};
  std::string all =
      "[{\"conversations\": []}, {\"conversations\": [{\"from\": \"human\", "
      "\"value\": \"alone here with some words\"}]}";
  for (const auto& [prompt, answer] : kept) all += ",\n" + Conversation(prompt, answer);
  for (const auto& [prompt, answer] : left) all += ",\n" + Conversation(prompt, answer);
  const Workload w = Made(Options("sharegpt", all + "]"), &tokenizer);
  std::set<std::pair<int, int>> lengths;
  for (const PlannedRequest& r : w.requests) {
    lengths.insert({r.prompt_tokens, r.output_tokens});
    EXPECT_EQ(tokenizer.Encode(std::get<std::string>(r.prompt))->size(),
              static_cast<size_t>(r.prompt_tokens));
  }
  EXPECT_EQ(lengths, (std::set<std::pair<int, int>>(std::begin(kept), std::end(kept))));
}

// Around a prompt, not around the answer; and no reason to leave out what is short enough.
TEST_F(Files, ShareGptCountsTheChatTemplateForPromptsOnly) {
  FakeTokenizer tokenizer(/*bos=*/true, /*chat=*/30);
  DatasetOptions options =
      Options("sharegpt", "[" + Conversation(5, 15) + "," + Conversation(1024, 1024) + "," +
                              Conversation(3, 15) + "]");
  options.chat = true;
  std::set<std::pair<int, int>> lengths;
  for (const PlannedRequest& r : Made(options, &tokenizer).requests)
    lengths.insert({r.prompt_tokens, r.output_tokens});
  EXPECT_EQ(lengths, (std::set<std::pair<int, int>>{{35, 15}, {1054, 1024}}));
  options.chat = false;
  lengths.clear();
  for (const PlannedRequest& r : Made(options, &tokenizer).requests)
    lengths.insert({r.prompt_tokens, r.output_tokens});
  EXPECT_EQ(lengths, (std::set<std::pair<int, int>>{{6, 15}, {1025, 1024}}));
}

// A server without `usage` leaves nothing else to go by.
TEST_F(Files, WithoutATokenizerLengthsAreGuessed) {
  EXPECT_EQ(Made(Options("sharegpt", Conversation(40, 40))).requests[0].prompt_tokens,
            (4 * 40 - 1 + 3) / 4);
  EXPECT_EQ(Made(Options("jsonl", R"({"prompt": "the man"})")).requests[0].prompt_tokens, 2);
  const Workload trace =
      Made(Options("trace", R"({"timestamp": 1, "input_length": 40, "output_length": 5})"));
  EXPECT_EQ(trace.requests[0].prompt_tokens, 40);
}

TEST_F(Files, MessagesAreTakenWhereTheyAreRendered) {
  DatasetOptions options =
      Options("jsonl", R"({"messages": [{"role": "user", "content": "the man"}]}
{"prompt": "the man"})");
  options.renders = true;
  const Workload w = Made(options);
  EXPECT_EQ(std::get<Messages>(w.requests[0].prompt)[0].content, "the man");
  EXPECT_EQ(w.requests[0].prompt_tokens, 2);
  EXPECT_EQ(std::get<std::string>(w.requests[1].prompt), "the man");
}

TEST_F(Files, AFilesFirstEntryTellsItsKind) {
  const std::pair<std::string, std::string_view> kinds[] = {
      {R"({"prompt": "a"})", "jsonl"},
      {R"([{"messages": []}, 3])", "jsonl"},
      {"[" + Conversation(5, 5) + "]", "sharegpt"},
      {R"({"timestamp": 1, "input_length": 40, "output_length": 5})", "trace"},
      {"Timestamp,Model,Request tokens,Response tokens\n5,ChatGPT,472,18\n", "trace"}};
  for (const auto& [content, kind] : kinds) {
    const auto found = KindOfFile(Options("jsonl", content).path);
    ASSERT_TRUE(found) << content;
    EXPECT_EQ(*found, kind) << content;
  }
  EXPECT_FALSE(KindOfFile(Options("jsonl", " ").path));
}

TEST_F(Files, ShareGptIsShuffledBySeedAndCut) {
  FakeTokenizer tokenizer;
  std::string all = "[" + Conversation(5, 5);
  for (int i = 6; i < 60; ++i) all += "," + Conversation(i, 5);
  DatasetOptions options = Options("sharegpt", all + "]");
  options.num_prompts = 10;
  const auto lengths = [&](uint64_t seed) {
    options.seed = seed;
    std::vector<int32_t> out;
    for (const PlannedRequest& r : Made(options, &tokenizer).requests)
      out.push_back(r.prompt_tokens);
    return out;
  };
  EXPECT_EQ(lengths(1).size(), 10u);
  EXPECT_EQ(lengths(1), lengths(1));
  EXPECT_NE(lengths(1), lengths(2));
}

TEST_F(Files, ShareGptThatIsNone) {
  EXPECT_THAT(Refused(Options("sharegpt", "[{\"text\": 1}]")),
              HasSubstr("line 1: no \"conversations\" array: is this a ShareGPT file?"));
  EXPECT_THAT(Refused(Options("sharegpt", "[{\"conversations\": [1, 2]}]")),
              HasSubstr("message 1 has no text \"value\""));
  EXPECT_THAT(Refused(Options("sharegpt", "[" + Conversation(1, 1) + "]")),
              HasSubstr("none of its 1 conversations has"));
}

TEST_F(Files, ATracesSharedBlocksAreSharedText) {
  FakeTokenizer tokenizer;
  const Workload w = Made(
      Options(
          "trace",
          R"({"timestamp": 1000, "input_length": 1300, "output_length": 52, "hash_ids": [1, 2, 3]}
{"timestamp": 1250, "input_length": 1300, "output_length": 26, "hash_ids": [1, 2, 4]}
{"timestamp": 1250, "input_length": 1300, "output_length": 26, "hash_ids": [1, 2, 3]}
{"timestamp": 9000, "input_length": 40, "output_length": 1, "hash_ids": [5]}
)"),
      &tokenizer);
  ASSERT_EQ(w.requests.size(), 4u);
  EXPECT_EQ(w.requests[0].at_s, 0);
  EXPECT_EQ(w.requests[1].at_s, 0.25);
  EXPECT_EQ(w.requests[3].at_s, 8);
  EXPECT_EQ(w.requests[1].output_tokens, 26);
  std::vector<std::vector<int32_t>> ids;
  for (const PlannedRequest& r : w.requests) {
    ids.push_back(*tokenizer.Encode(std::get<std::string>(r.prompt)));
  }
  EXPECT_EQ(ids[0].size(), 1300u);
  EXPECT_EQ(ids[3].size(), 40u);
  EXPECT_EQ(ids[0], ids[2]);
  size_t same = 0;
  while (same < 1300 && ids[0][same] == ids[1][same]) ++same;
  EXPECT_GE(same, 1000u);  // two blocks of 512, and not the third
  EXPECT_LT(same, 1100u);
}

TEST_F(Files, BurstGptsCsv) {
  const Workload w =
      Made(Options("trace",
                   "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log "
                   "Type\r\n5,ChatGPT,472,18,490,Conversation log\r\n45,ChatGPT,10,0,"
                   "10,Conversation log\r\n47.5,GPT-4,20,30,50,API log\r\n"));
  ASSERT_EQ(w.requests.size(), 2u);  // a response of 0 tokens is one that failed
  EXPECT_EQ(w.requests[0].output_tokens, 18);
  EXPECT_EQ(w.requests[1].at_s, 42.5);
}

TEST_F(Files, BrokenTraces) {
  const BadLine kBad[] = {
      {"{\"timestamp\": 1, \"input_length\": 5}", "line 1: it lacks \"timestamp\""},
      {"{\"timestamp\": 1, \"input_length\": 0, \"output_length\": 1}", "\"input_length\" is 0"},
      {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": 3}",
       "\"hash_ids\" is not an array"},
      {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": [\"a\"]}",
       "something that is no number"},
      {"{\"timestamp\": 2, \"input_length\": 5, \"output_length\": 1}\n"
       "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}",
       "line 2: its time is before"},
      {"Timestamp,Request tokens,Response tokens\n1,x,2\n", "line 2: not the numbers"},
      {"Timestamp,Request tokens,Response tokens\n1,5\n", "line 2: not the numbers"},
      {"Timestamp,Request tokens,Response tokens\n-1,5,5\n", "line 2: a time or a length"},
      {"Timestamp,Request tokens,Response tokens\n", "no requests with tokens in and out"},
      {"a,b,c\n", "line 1: not JSON"},
  };
  for (const BadLine& bad : kBad) {
    EXPECT_THAT(Refused(Options("trace", bad.content)), HasSubstr(bad.why)) << bad.content;
  }
}

}  // namespace
}  // namespace vivace::load
