#include "server/openai/logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/utf8.h"

namespace vivace::server {
namespace {

constexpr float kLeastLogprob = -9999.0f;

float Finite(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, kLeastLogprob) : kLeastLogprob;
}

// The alternatives to show: the best `top`, and the drawn token wherever it ranks.
std::vector<TokenLogprob> Alternatives(const LogprobEntry& entry, int32_t top, bool replace_last) {
  const size_t count = std::min(entry.top.size(), static_cast<size_t>(std::max(top, 0)));
  std::vector<TokenLogprob> list(entry.top.begin(),
                                 entry.top.begin() + static_cast<ptrdiff_t>(count));
  const bool listed = std::any_of(list.begin(), list.end(), [&](const TokenLogprob& alternative) {
    return alternative.token == entry.token;
  });
  if (listed) return list;
  const TokenLogprob drawn{entry.token, entry.logprob};
  if (!replace_last) {
    list.push_back(drawn);
  } else if (!list.empty()) {
    list.back() = drawn;
  }
  return list;
}

void WriteTokenFields(const LogprobStyle& style, TokenId token, float logprob, JsonWriter* w) {
  w->KeyString("token", TokenName(style, token));
  w->Key("logprob");
  w->Float(Finite(logprob));
  w->Key("bytes");
  w->BeginArray();
  for (const char byte : style.tokenizer->TokenBytes(token)) {
    w->Int(static_cast<unsigned char>(byte));
  }
  w->EndArray();
}

// As an object of name to value. Two tokens can have one name; the likelier keeps it.
void WriteAlternativesObject(const LogprobStyle& style, const LogprobEntry& entry, JsonWriter* w) {
  if (!entry.has_value) {
    w->Null();
    return;
  }
  std::vector<std::string> names;
  w->BeginObject();
  for (const TokenLogprob& alternative : Alternatives(entry, style.top, false)) {
    std::string name = TokenName(style, alternative.token);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    w->Key(name);
    w->Float(Finite(alternative.logprob));
    names.push_back(std::move(name));
  }
  w->EndObject();
}

void WriteRanked(const LogprobStyle& style, const TokenLogprob& token, int32_t rank,
                 JsonWriter* w) {
  w->Key(fmt::format("{}", token.token));
  w->BeginObject();
  w->Key("logprob");
  w->Float(Finite(token.logprob));
  w->KeyInt("rank", rank);
  w->KeyString("decoded_token", TokenName(style, token.token));
  w->EndObject();
}

}  // namespace

std::string TokenName(const LogprobStyle& style, TokenId token) {
  if (style.tokens_as_ids) return fmt::format("token_id:{}", token);
  const std::string_view bytes = style.tokenizer->TokenBytes(token);
  if (utf8::IsValid(bytes)) return std::string(bytes);
  std::string name = "bytes:";
  for (const char byte : bytes) {
    fmt::format_to(std::back_inserter(name), "\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return name;
}

void WriteLogprobList(const LogprobStyle& style, std::span<const LogprobEntry> entries,
                      JsonWriter* w) {
  w->BeginArray();
  for (const LogprobEntry& entry : entries) {
    w->BeginObject();
    WriteTokenFields(style, entry.token, entry.logprob, w);
    w->Key("top_logprobs");
    w->BeginArray();
    for (const TokenLogprob& alternative : Alternatives(entry, style.top, true)) {
      w->BeginObject();
      WriteTokenFields(style, alternative.token, alternative.logprob, w);
      w->EndObject();
    }
    w->EndArray();
    w->EndObject();
  }
  w->EndArray();
}

void WriteChatLogprobs(const LogprobStyle& style, std::span<const LogprobEntry> entries,
                       JsonWriter* w) {
  w->BeginObject();
  w->Key("content");
  WriteLogprobList(style, entries, w);
  w->KeyNull("refusal");
  w->EndObject();
}

void WritePromptLogprobs(const LogprobStyle& style, const PromptLogprobs& logprobs, JsonWriter* w) {
  w->BeginArray();
  if (!logprobs.chosen.empty()) w->Null();
  for (size_t i = 1; i < logprobs.chosen.size(); ++i) {
    w->BeginObject();
    const TokenLogprob& chosen = logprobs.chosen[i];
    WriteRanked(style, chosen, logprobs.rank[i], w);
    const auto top =
        std::span(logprobs.top)
            .subspan(i * static_cast<size_t>(logprobs.stride),
                     static_cast<size_t>(std::min<int32_t>(logprobs.num_top[i], style.top)));
    for (size_t k = 0; k < top.size(); ++k) {
      if (top[k].token != chosen.token) WriteRanked(style, top[k], static_cast<int32_t>(k) + 1, w);
    }
    w->EndObject();
  }
  w->EndArray();
}

void WriteCompletionLogprobs(const LogprobStyle& style, std::span<const LogprobEntry> entries,
                             JsonWriter* w) {
  w->BeginObject();
  w->Key("tokens");
  w->BeginArray();
  for (const LogprobEntry& entry : entries) w->String(TokenName(style, entry.token));
  w->EndArray();
  w->Key("token_logprobs");
  w->BeginArray();
  for (const LogprobEntry& entry : entries) {
    entry.has_value ? w->Float(Finite(entry.logprob)) : w->Null();
  }
  w->EndArray();
  w->Key("top_logprobs");
  w->BeginArray();
  for (const LogprobEntry& entry : entries) WriteAlternativesObject(style, entry, w);
  w->EndArray();
  w->Key("text_offset");
  w->BeginArray();
  for (const LogprobEntry& entry : entries) w->Int(entry.text_offset);
  w->EndArray();
  w->EndObject();
}

}  // namespace vivace::server
