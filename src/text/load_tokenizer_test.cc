// Both readers, by way of LoadTokenizer: whole files in, a tokenizer or a verdict out.
#include "text/load_tokenizer.h"

#include <gmock/gmock.h>

#include "formats/gguf.h"
#include "text/text_testing.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"

namespace vivace {
namespace {

using ::testing::AnyOf;
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
      // Patterns and normalisers of other kinds may be refused by name; only the control must load.
      const bool known = verdict.name == "tokenizer/control.json";
      EXPECT_THAT(ReasonOf(tokenizer), AnyOf("accepted", StartsWith(known ? "-" : "unknown_")))
          << verdict.name;
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
      {"normalizer", R"({"type": "NFKC"})", "unknown_normalizer"},
      {"normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})", "accepted"},
      {"normalizer", R"({"type": "Sequence", "normalizers": [1]})", "wrong_type"},
      {"normalizer", "7", "wrong_type"},
      {"pre_tokenizer", "null", "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Metaspace"})", "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
          {"type": "Digits", "individual_digits": true},
          {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})",
       "accepted"},
      {"pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
          {"type": "Digits", "individual_digits": false},
          {"type": "ByteLevel", "add_prefix_space": false}]})",
       "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
          {"type": "Digits", "individual_digits": true},
          {"type": "ByteLevel", "add_prefix_space": true}]})",
       "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"String": " "}})", "unknown_pretokenizer"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "[a"}})", "bad_regex"},
      {"decoder", "null", "unknown_decoder"},
      {"decoder", R"({"type": "WordPiece"})", "unknown_decoder"},
      {"post_processor", "null", "accepted"},
      {"post_processor", R"({"type": "BertProcessing"})", "unknown_post_processor"},
      {"post_processor", R"({"type": "TemplateProcessing", "single": []})",
       "unknown_post_processor"},
      {"post_processor", R"({"type": "TemplateProcessing", "special_tokens": {},
          "single": [{"SpecialToken": {"id": "<x>"}}, {"Sequence": {"id": "A"}}]})",
       "missing_key"},
      {"added_tokens", R"([{"id": 9, "content": "x", "single_word": true}])", "unknown_tokenizer"},
      {"added_tokens", R"([{"content": "x"}])", "wrong_type"},
      {"added_tokens", R"([{"id": 3, "content": "<s>"}, {"id": 1048575, "content": "x"}])",
       "accepted"},
      {"added_tokens", R"([{"id": 1048576, "content": "x"}])", "token_id_range"},
      {"added_tokens", R"([{"id": 7, "content": "a"}])", "duplicate_token_id"},
      {"added_tokens", R"({"a": 1})", "wrong_type"},
      {"model", "null", "missing_key"},
      {"model", R"({"type": "WordPiece", "vocab": {}})", "unknown_tokenizer"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "byte_fallback": true})",
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

TEST(TokenizerGguf, DataOfTheDefaultModel) {
  if (!std::filesystem::exists(testing::kSmolLm2Path))
    GTEST_SKIP() << "needs models/ (./dev setup)";
  const auto file = formats::GgufFile::Open(testing::kSmolLm2Path);
  ASSERT_TRUE(file);
  const auto data = TokenizerFromGguf(*file);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->tokens.size(), 49152u);
  EXPECT_EQ(data->pretokenizer, Pretokenizer::kSmolLm);
  EXPECT_EQ(data->bos, 1);
  EXPECT_EQ(data->eos, 2);
  EXPECT_FALSE(data->add_bos);
  EXPECT_EQ(data->unknown, std::nullopt);
}

}  // namespace
}  // namespace vivace
