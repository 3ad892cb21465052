// A tokenizer small enough to read, with the tokens that the tests force.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer.h"

namespace vivace::server::testing {

inline constexpr TokenId kEndOfText = 0;
inline constexpr TokenId kImStart = 1;
inline constexpr TokenId kImEnd = 2;  // EOS
inline constexpr TokenId ByteToken(unsigned char byte) { return 3 + byte; }
inline constexpr TokenId kSpaceHello = 263;  // " hello"
inline constexpr TokenId kHalfEmoji = 264;   // F0 9F: 😀 is this and the bytes 98 80
inline constexpr TokenId kSpaceOk = 266;     // " ok"
inline constexpr int32_t kTestVocab = 267;

// Control tokens 0 to 2, all bytes, and a few words.
inline std::shared_ptr<const Tokenizer> TestTokenizer() {
  TokenizerData data;
  data.tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    data.tokens.push_back(AlphabetFromBytes({&c, 1}));
  }
  const auto merge = [&data](std::string_view left, std::string_view right) {
    data.merges.push_back({AlphabetFromBytes(left), AlphabetFromBytes(right)});
    data.tokens.push_back(AlphabetFromBytes(std::string(left) + std::string(right)));
  };
  merge("h", "e");
  merge("l", "l");
  merge("he", "ll");
  merge("hell", "o");
  merge(" ", "hello");
  merge("\xF0", "\x9F");
  merge("o", "k");
  merge(" ", "ok");
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  for (const size_t id : {kEndOfText, kImStart, kImEnd}) data.types[id] = TokenType::kControl;
  data.bos = kImStart;
  data.eos = kImEnd;
  auto tokenizer = Tokenizer::Create(std::move(data));
  VIVACE_CHECK(tokenizer.has_value());
  VIVACE_CHECK((*tokenizer)->vocab_size() == kTestVocab);
  return std::move(*tokenizer);
}

}  // namespace vivace::server::testing
