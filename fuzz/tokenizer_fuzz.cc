// Any bytes as a tokenizer.json or a tokenizer.model. What is accepted must give ids of its own
// vocabulary, the same ones twice, and no control token to text that nobody vouches for.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "text/sentence_piece.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace {

constexpr std::string_view kText =
    " Grüße\u00a0aus  K\u00f6ln:\n\t x=3.14; <s></s> <|im_end|> e\u0301 \U0001F469\u200d\U0001F680 "
    "aaaaaaaaaaaaaaaa \xff\xc3 1234567 don't WON'T";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto read = bytes.starts_with('{') ? vivace::TokenizerFromJson(bytes)
                                     : vivace::sentence_piece::ReadModel(bytes);
  if (!read) return 0;
  const auto tokenizer = vivace::Tokenizer::Create(std::move(*read));
  if (!tokenizer) return 0;
  const vivace::Tokenizer& t = **tokenizer;
  // The file's own words, too: they are what its tables are about.
  const std::string text = std::string(kText) + std::string(bytes.substr(0, 512));
  const auto ids = t.Encode(text);
  VIVACE_CHECK(ids == t.Encode(text));
  for (const vivace::TokenId id : ids) VIVACE_CHECK(t.Contains(id));
  VIVACE_CHECK(t.Decode(ids, false) == t.Decode(ids, false));
  const vivace::Segment untrusted[] = {{.begin = 0, .end = text.size(), .trusted = false}};
  std::optional<vivace::TokenId> unknown;  // the only one of them that any text may become
  for (const vivace::TokenId id : t.EncodeSegments(text, untrusted)) {
    VIVACE_CHECK(t.Contains(id));
    if (!t.IsSpecial(id)) continue;
    VIVACE_CHECK(unknown.value_or(id) == id);
    unknown = id;
  }
  return 0;
}
