// Tokenizers and files for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "support/paths.h"
#include "text/byte_alphabet.h"
#include "text/load_tokenizer.h"
#include "text/sentence_piece.h"
#include "text/tokenizer.h"

namespace vivace::testing {

inline const std::string kSourceDir = SourceDir();
inline const std::string kSharedDir = kSourceDir + "/../shared";
inline const std::string kSmolLm2Path = kSourceDir + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Null if the model is not there (`./dev setup` gets it).
inline std::shared_ptr<const Tokenizer> SmolLm2() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      []() -> std::shared_ptr<const Tokenizer> {
    if (!std::filesystem::exists(kSmolLm2Path)) return nullptr;
    auto loaded = LoadTokenizer(kSmolLm2Path);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? *loaded : nullptr;
  }();
  return tokenizer;
}

// A tokenizer.json of ../shared/tokenizers, unpacked; null if it or `xz` is not there.
inline std::shared_ptr<const Tokenizer> SharedTokenizer(const std::string& name) {
  const std::string packed = kSharedDir + "/tokenizers/" + name + "/tokenizer.json.xz";
  if (!std::filesystem::exists(packed)) return nullptr;
  const std::string path = ::testing::TempDir() + "/vivace_" + name + "_tokenizer.json";
  const std::string command = "xz -dc '" + packed + "' > '" + path + "'";
  if (std::system(command.c_str()) != 0) return nullptr;
  auto loaded = LoadTokenizer(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? *loaded : nullptr;
}

// All 256 bytes (ids 0 to 255), "he", "ll", "llo", "hello" (256 to 259), the control tokens <bos>
// and <|end|> (260, 261), and the user-defined <think> (262).
inline TokenizerData TinyData() {
  TokenizerData data;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    data.tokens.push_back(AlphabetFromBytes({&c, 1}));
  }
  for (const char* token : {"he", "ll", "llo", "hello", "<bos>", "<|end|>", "<think>"}) {
    data.tokens.push_back(token);
  }
  data.merges = {{"h", "e"}, {"l", "l"}, {"ll", "o"}, {"he", "llo"}};
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  data.types[260] = data.types[261] = TokenType::kControl;
  data.types[262] = TokenType::kUserDefined;
  data.bos = 260;
  data.eos = 261;
  return data;
}

// SentencePiece's kind: <unk> (0), <0x00> to <0xFF> (1 to 256), and a few words from 257.
inline TokenizerData TinySentencePiece(bool unigram) {
  TokenizerData data;
  data.tokens = {"<unk>"};
  for (int byte = 0; byte < 256; ++byte) data.tokens.push_back(fmt::format("<0x{:02X}>", byte));
  for (const char* word :
       {"\u2581", "a", "b", "1", "aa", "\u2581\u2581", "aaaa", "\u2581a", "語"}) {
    data.tokens.push_back(word);
  }
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  data.types[0] = TokenType::kUnknown;
  for (int byte = 0; byte < 256; ++byte) data.types[1 + byte] = TokenType::kByte;
  for (size_t id = 0; id < data.tokens.size(); ++id) data.scores.push_back(-double(id));
  data.unknown = 0;
  sentence_piece::SetUpBpe(/*prefix=*/true, &data);
  if (unigram) {
    data.model = TokenizerData::Model::kUnigram;
    data.merge_by_score = false;
  }
  return data;
}

// BERT's kind: [UNK] (0) and a few words.
inline TokenizerData TinyWordPiece() {
  TokenizerData data;
  data.tokens = {"[UNK]", "a", "##a", "##aa", "b", "##b", "語", "!", "1", "##1"};
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  data.types[0] = TokenType::kUnknown;
  data.unknown = 0;
  data.model = TokenizerData::Model::kWordPiece;
  data.continuing_prefix = "##";
  data.max_word_characters = size_t{1} << 30;
  data.normalizer = {normalize::Bert{true, true, true, true}};
  data.cutter = BertCutter();
  data.decoder = {decode::WordPiece{}};
  return data;
}

inline std::shared_ptr<const Tokenizer> Make(TokenizerData data) {
  auto tokenizer = Tokenizer::Create(std::move(data));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? *tokenizer : nullptr;
}

inline boost::json::object GoldenCases() {
  return boost::json::parse(ReadFile(kSourceDir + "/src/text/testdata/golden_cases.json"))
      .as_object();
}

}  // namespace vivace::testing
