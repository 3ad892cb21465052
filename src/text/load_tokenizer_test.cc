// Both readers, by way of LoadTokenizer: whole files in, a tokenizer or a verdict out.
#include "text/load_tokenizer.h"

#include <gmock/gmock.h>

#include "base/limits.h"
#include "formats/gguf.h"
#include "text/sentence_piece.h"
#include "text/text_testing.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"

namespace vivace {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;
namespace json = boost::json;

std::string ReasonOf(const Result<std::shared_ptr<const Tokenizer>>& tokenizer) {
  return tokenizer ? "accepted" : tokenizer.error().reason;
}

struct Verdict {
  std::string name, expect, reason;
};

std::vector<Verdict> SharedVerdicts(std::string_view folder) {
  std::vector<Verdict> verdicts;
  const std::string path = testing::kSharedDir + "/cases/bad/manifest.json";
  if (!std::filesystem::exists(path)) return verdicts;
  const json::value manifest = json::parse(testing::ReadFile(path));
  for (const auto& row : manifest.at("cases").as_array()) {
    const json::object& c = row.as_object();
    const std::string name(c.at("name").as_string());
    if (!name.starts_with(folder)) continue;
    verdicts.push_back({name, std::string(c.at("expect").as_string()),
                        c.contains("reason") ? std::string(c.at("reason").as_string()) : ""});
  }
  return verdicts;
}

TEST(LoadTokenizer, SharedBadTokenizers) {
  const auto verdicts = SharedVerdicts("tokenizer/");
  if (verdicts.empty()) GTEST_SKIP() << "needs ../shared/cases/bad";
  for (const Verdict& verdict : verdicts) {
    const auto tokenizer = LoadTokenizer(testing::kSharedDir + "/cases/bad/" + verdict.name);
    if (verdict.expect == "accept") {
      ASSERT_EQ(ReasonOf(tokenizer), "accepted") << verdict.name;
      // What a backtracking matcher would never finish.
      for (const std::string& text : {std::string(40, 'a') + "!", std::string(200'000, 'Z')}) {
        (*tokenizer)->Encode(text);
      }
    } else {
      EXPECT_EQ(ReasonOf(tokenizer), verdict.reason) << verdict.name;
    }
  }
}

TEST(LoadTokenizer, SharedBadGgufVocabularies) {
  const auto verdicts = SharedVerdicts("gguf/model_");
  if (verdicts.empty()) GTEST_SKIP() << "needs ../shared/cases/bad";
  const std::string_view ours[] = {"bad_merge", "vocab_mismatch", "wrong_type", "bad_byte_token"};
  int seen = 0;
  for (const Verdict& verdict : verdicts) {
    if (std::ranges::find(ours, verdict.reason) == std::end(ours)) continue;
    ++seen;
    EXPECT_EQ(ReasonOf(LoadTokenizer(testing::kSharedDir + "/cases/bad/" + verdict.name)),
              verdict.reason)
        << verdict.name;
  }
  EXPECT_EQ(seen, 4);
  EXPECT_EQ(ReasonOf(LoadTokenizer(testing::kSharedDir + "/cases/bad/gguf/control_mini.gguf")),
            "accepted");
}

TEST(LoadTokenizer, MessagesBeginWithThePath) {
  const auto missing = LoadTokenizer("/nonexistent/tokenizer.json");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, StartsWith("/nonexistent/tokenizer.json: "));
  EXPECT_EQ(missing.error().reason, "not_found");
}

TEST(LoadTokenizer, AFolderIsItsTokenizerJson) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "vivace_tokenizer_folder";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << "[]";
  EXPECT_EQ(ReasonOf(LoadTokenizer(folder.string())), "bad_json");
  std::filesystem::remove_all(folder);
}

// A small tokenizer.json to spoil, one member at a time.
json::object Sound() {
  return json::parse(R"({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true},
                     {"id": 4, "content": "<tool>", "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
  })")
      .as_object();
}

std::string Load(const json::object& root) {
  auto data = TokenizerFromJson(json::serialize(root));
  if (!data) return data.error().reason;
  return ReasonOf(Tokenizer::Create(std::move(*data)));
}

TEST(TokenizerJson, Sound) {
  auto data = TokenizerFromJson(json::serialize(Sound()));
  ASSERT_TRUE(data) << data.error().message;
  const auto tokenizer = testing::Make(std::move(*data));
  EXPECT_THAT(tokenizer->Encode("aab<s><tool>"), ElementsAre(3, 0, 2, 3, 4));
  EXPECT_TRUE(tokenizer->IsSpecial(3));
  EXPECT_FALSE(tokenizer->IsSpecial(4));
  EXPECT_EQ(tokenizer->bos(), 3);
}

TEST(TokenizerJson, WhatIsNotUnderstoodIsNamed) {
  struct Change {
    const char* member;
    const char* value;
    const char* reason;
  };
  const Change changes[] = {
      {"normalizer", R"({"type": "NFKC"})", "accepted"},
      {"normalizer", R"({"type": "Nonesuch"})", "unknown_normalizer"},
      {"normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})", "accepted"},
      {"normalizer", R"({"type": "Sequence", "normalizers": [1]})", "wrong_type"},
      {"normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "?"})", "wrong_type"},
      {"normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "////fw=="})",
       "bad_charsmap"},
      {"normalizer", R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})",
       "bad_regex"},
      {"normalizer", "7", "wrong_type"},
      {"pre_tokenizer", "null", "accepted"},
      {"pre_tokenizer", R"({"type": "Metaspace"})", "accepted"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})", "wrong_type"},
      {"pre_tokenizer", R"({"type": "UnicodeScripts"})", "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
          {"type": "ByteLevel"}, {"type": "ByteLevel"}]})",
       "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"String": " "}})", "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "[a"}})", "bad_regex"},
      {"pre_tokenizer",
       R"({"type": "Split", "pattern": {"Regex": "(a)\\1"}, "behavior": "Isolated"})",
       "unsupported_regex"},
      {"decoder", "null", "accepted"},
      {"decoder", R"({"type": "CTC"})", "unknown_decoder"},
      {"post_processor", "null", "accepted"},
      {"post_processor", R"({"type": "BertProcessing"})", "wrong_type"},
      {"post_processor", R"({"type": "BertProcessing", "sep": ["a", 99], "cls": ["b", 1]})",
       "token_id_range"},
      {"post_processor", R"({"type": "TemplateProcessing", "single": []})",
       "unknown_post_processor"},
      {"post_processor", R"({"type": "TemplateProcessing", "special_tokens": {},
          "single": [{"SpecialToken": {"id": "<x>"}}, {"Sequence": {"id": "A"}}]})",
       "missing_key"},
      {"added_tokens",
       R"([{"id": 3, "content": "<s>"}, {"id": 9, "content": "x", "single_word": true}])",
       "accepted"},
      {"added_tokens", R"([{"content": "x"}])", "wrong_type"},
      {"added_tokens", R"([{"id": 3, "content": "<s>"}, {"id": 1048575, "content": "x"}])",
       "accepted"},
      {"added_tokens", R"([{"id": 1048576, "content": "x"}])", "token_id_range"},
      {"added_tokens", R"([{"id": 7, "content": "a"}])", "duplicate_token_id"},
      {"added_tokens", R"({"a": 1})", "wrong_type"},
      {"model", "null", "missing_key"},
      {"model", R"({"type": "WordPiece", "vocab": {"a": 0}})", "accepted"},
      {"model", R"({"type": "Unigram", "vocab": [["a", -1], ["b", -2]], "unk_id": 7})",
       "token_id_range"},
      {"model", R"({"type": "Unigram", "vocab": [["a", -1], ["b"]]})", "wrong_type"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "byte_fallback": true})", "accepted"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "byte_fallback": true,
          "end_of_word_suffix": "</w>"})",
       "unknown_tokenizer"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "dropout": 0.1})", "unknown_tokenizer"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "unk_token": "?"})", "token_id_range"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0, "b": 0}})", "duplicate_token_id"},
      {"model", R"({"type": "BPE", "vocab": {"a": "0"}})", "wrong_type"},
      {"model", R"({"type": "BPE", "vocab": ["a"]})", "wrong_type"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]})", "bad_merge"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [3]})", "bad_merge"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a "]})", "bad_merge"},
  };
  EXPECT_EQ(Load(Sound()), "accepted");
  for (const Change& change : changes) {
    json::object root = Sound();
    root[change.member] = json::parse(change.value);
    EXPECT_EQ(Load(root), change.reason) << change.member << ": " << change.value;
  }
}

// Steps that each keep their bounds multiply: a letter must not become gigabytes.
TEST(TokenizerJson, WhatStepsMakeOfATextIsBounded) {
  const auto chain = [](std::string_view type, std::string_view steps, size_t count,
                        const json::object& pattern, size_t bytes) {
    const json::object step = {
        {"type", "Replace"}, {"pattern", pattern}, {"content", std::string(bytes, 'a')}};
    return json::object{{"type", type}, {steps, json::array(count, step)}};
  };
  const json::object letter = {{"String", "a"}}, word = {{"String", "aaaa"}},
                     any = {{"Regex", "."}};
  struct Case {
    const json::object& pattern;
    size_t bytes, count;
    bool accepted;
  };
  const Case cases[] = {{letter, 2, 10, true},   {letter, 2, 11, false}, {letter, 500, 1, true},
                        {letter, 500, 2, false}, {word, 4, 40, true},    {word, 8, 11, false},
                        {any, 1, 10, true},      {any, 1, 11, false}};
  for (const auto& [pattern, bytes, count, accepted] : cases) {
    const std::string_view verdict = accepted ? "accepted" : "text_growth";
    json::object root = Sound();
    root["normalizer"] = chain("Sequence", "normalizers", count, pattern, bytes);
    EXPECT_EQ(Load(root), verdict) << json::serialize(pattern) << count;
    root = Sound();
    root["decoder"] = chain("Sequence", "decoders", count, pattern, bytes);
    EXPECT_EQ(Load(root), verdict) << json::serialize(pattern) << count;
  }
  json::object root = Sound();
  root["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", json::array(11, json::object{{"type", "ByteLevel"}})}};
  EXPECT_EQ(Load(root), "text_growth");
}

TEST(TokenizerJson, Limits) {
  const auto replace = [](size_t bytes) {
    return json::object{{"type", "Prepend"}, {"prepend", std::string(bytes, 'x')}};
  };
  json::object root = Sound();
  root["normalizer"] = replace(limits::kMaxReplacementBytes);
  EXPECT_EQ(Load(root), "accepted");
  root["normalizer"] = replace(limits::kMaxReplacementBytes + 1);
  EXPECT_EQ(Load(root), "text_too_long");
  const json::value step =
      json::object{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  json::array steps(limits::kMaxTokenizerSteps, step);
  root["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  EXPECT_EQ(Load(root), "accepted");
  steps.push_back(step);
  root["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  EXPECT_EQ(Load(root), "too_many_steps");
  const auto split = [](size_t characters) {
    return json::object{{"type", "Split"},
                        {"pattern", {{"Regex", fmt::format("(?=a{{{}}})b", characters)}}},
                        {"behavior", "Isolated"}};
  };
  root = Sound();
  root["pre_tokenizer"] = split(limits::kMaxRegexLookAhead);
  EXPECT_EQ(Load(root), "accepted");
  root["pre_tokenizer"] = split(limits::kMaxRegexLookAhead + 1);
  EXPECT_EQ(Load(root), "unsupported_regex");
  const auto word = [](size_t bytes) {
    return json::object{{"type", "WordPiece"}, {"vocab", {{std::string(bytes, 'x'), 0}}}};
  };
  root = Sound();
  root["model"] = word(limits::kMaxTrieTokenBytes);
  EXPECT_EQ(Load(root), "accepted");
  root["model"] = word(limits::kMaxTrieTokenBytes + 1);
  EXPECT_EQ(Load(root), "token_too_long");
}

TEST(TokenizerJson, BrokenJson) {
  const auto reason = [](std::string_view text) {
    const auto data = TokenizerFromJson(text);
    return data ? "accepted" : data.error().reason;
  };
  EXPECT_EQ(reason(""), "bad_json");
  EXPECT_EQ(reason("{\"a\":"), "bad_json");
  EXPECT_EQ(reason("{\"a\":\"\xFF\"}"), "bad_json");
  EXPECT_EQ(reason(std::string(100'000, '[')), "bad_json");
  const std::string sound = json::serialize(Sound());
  for (size_t cut = 0; cut < sound.size(); ++cut) {
    EXPECT_EQ(reason(std::string_view(sound).substr(0, cut)), "bad_json");
  }
}

TEST(LoadTokenizer, AFolderSaysWhatEndsAnAnswer) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "vivace_tokenizer_ends";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << json::serialize(Sound());
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"bos_token": {"content": "<s>"}, "eos_token": "ab", "pad_token": "nonesuch"})";
  std::ofstream(folder / "generation_config.json") << R"({"eos_token_id": [1, 2, 999]})";
  const auto tokenizer = LoadTokenizer(folder.string());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->eos_ids(), ElementsAre(2, 1));
  EXPECT_EQ((*tokenizer)->pad(), std::nullopt);
  std::ofstream(folder / "generation_config.json") << "[";
  EXPECT_EQ(ReasonOf(LoadTokenizer(folder.string())), "bad_json");
  std::filesystem::remove_all(folder);
}

TEST(LoadTokenizer, TheFilesBesideATokenizerAreBoundedAndNamed) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "vivace_tokenizer_beside";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << json::serialize(Sound());
  const auto loaded = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    auto tokenizer = LoadTokenizer(folder.string());
    const std::string path = (folder / name).string() + ": ";
    if (!tokenizer) {
      EXPECT_THAT(tokenizer.error().message, StartsWith(path));
      EXPECT_EQ(tokenizer.error().message.find(folder.string(), 1), std::string::npos);
    }
    return ReasonOf(tokenizer);
  };
  EXPECT_EQ(loaded("generation_config.json", "7"), "bad_json");
  EXPECT_EQ(loaded("generation_config.json", R"({"eos_token_id": "x"})"), "wrong_type");
  std::string padded(limits::kMaxConfigBytes, ' ');
  padded.replace(0, 2, "{}");
  EXPECT_EQ(loaded("generation_config.json", padded), "accepted");
  EXPECT_EQ(loaded("generation_config.json", padded + " "), "file_limit");
  std::filesystem::remove(folder / "generation_config.json");
  EXPECT_EQ(loaded("tokenizer_config.json", "{"), "bad_json");
  EXPECT_EQ(loaded("tokenizer_config.json", padded + " "), "accepted");
  for (const char* key : {"bos_token", "eos_token", "pad_token"}) {
    for (const char* value : {"7", "true", "[\"<s>\"]", R"({"content": 7})"}) {
      EXPECT_EQ(loaded("tokenizer_config.json", fmt::format(R"({{"{}": {}}})", key, value)),
                "wrong_type");
    }
    for (const char* value : {"null", "\"\"", "{}", R"({"content": null})"}) {
      EXPECT_EQ(loaded("tokenizer_config.json", fmt::format(R"({{"{}": {}}})", key, value)),
                "accepted");
    }
  }
  std::filesystem::resize_file(folder / "tokenizer_config.json",
                               limits::kMaxTokenizerJsonBytes + 1);
  EXPECT_EQ(ReasonOf(LoadTokenizer(folder.string())), "file_limit");
  std::filesystem::remove_all(folder);
}

// "a", "b", "ab" of type normal after <unk>, as SentencePiece writes them.
std::string TinyModel() {
  std::string out;
  const auto piece = [&](std::string_view text, char type) {
    out += '\x0A';
    out += static_cast<char>(text.size() + 9);
    out += '\x0A';
    out += static_cast<char>(text.size());
    out += text;
    out += std::string("\x15\0\0\0\0\x18", 6) + type;
  };
  piece("<unk>", 2);
  for (const char* text : {"a", "b", "ab"}) piece(text, 1);
  out += std::string("\x12\x02\x18\x02\x1A\x04\x18\0\x20\0", 10);  // BPE, no prefix, no trimming
  return out;
}

TEST(SentencePiece, AModelAndEveryCutOfIt) {
  const std::string model = TinyModel();
  auto data = sentence_piece::ReadModel(model);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_THAT(testing::Make(std::move(*data))->Encode("aabz", {.add_special_tokens = false}),
              ElementsAre(1, 3, 0));
  for (size_t cut = 0; cut < model.size(); ++cut) {
    auto part = sentence_piece::ReadModel(std::string_view(model).substr(0, cut));
    if (part) Tokenizer::Create(std::move(*part)).has_value();
    std::string spoilt = model;
    spoilt[cut] = static_cast<char>(~spoilt[cut]);
    if (auto bad = sentence_piece::ReadModel(spoilt))
      Tokenizer::Create(std::move(*bad)).has_value();
  }
  EXPECT_EQ(sentence_piece::ReadModel("\xFF\xFF").error().reason, "bad_protobuf");
}

TEST(TokenizerGguf, DataOfTheDefaultModel) {
  if (!std::filesystem::exists(testing::kSmolLm2Path))
    GTEST_SKIP() << "needs models/ (./dev setup)";
  const auto file = formats::GgufFile::Open(testing::kSmolLm2Path);
  ASSERT_TRUE(file);
  const auto data = TokenizerFromGguf(*file);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->tokens.size(), 49152u);
  EXPECT_EQ(data->bos, 1);
  EXPECT_EQ(data->eos, 2);
  EXPECT_FALSE(data->add_bos);
  EXPECT_EQ(data->unknown, std::nullopt);
}

}  // namespace
}  // namespace vivace
