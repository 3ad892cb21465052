#include "load/client/server_tokens.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/limits.h"
#include "engine/model_text.h"
#include "load/client/chunk.h"
#include "load/client/fetch.h"
#include "load/datasets/tokenizer_counter.h"
#include "text/load_tokenizer.h"

namespace vivace::load {
namespace {

namespace json = boost::json;

constexpr std::string_view kSample = "the";
constexpr int32_t kNeighbours = 4;  // some ids of a vocabulary stand for no text
constexpr int kAttempts = 3;        // a server that is busy or restarts its connections

// In whose shape requests are, and where the answers are found.
struct Dialect {
  const char *text, *decoded;  // member of /tokenize's request, of /detokenize's answer
};
constexpr Dialect kVllm = {"prompt", "prompt"};
constexpr Dialect kLlamaServer = {"content", "content"};

class ServerCounter final : public TokenCounter {
 public:
  ServerCounter(const Target& target, std::string model)
      : fetch_(target), model_(JsonQuoted(model)) {}

  Status Open() {
    auto sample = Encode(kSample);
    if (!sample) {
      dialect_ = kLlamaServer;
      if (!Encode(kSample)) return tl::unexpected<Error>(std::move(sample.error()));
    }
    return FindVocabulary();
  }

  Result<std::vector<int32_t>> Encode(std::string_view text) override {
    return Tokens(fmt::format(R"({{"model":{},"{}":{},"add_special_tokens":true}})", model_,
                              dialect_.text, JsonQuoted(text)));
  }

  Result<std::string> Decode(std::span<const int32_t> ids) override {
    VIVACE_ASSIGN(const json::object answer,
                  Ask("/detokenize",
                      fmt::format(R"({{"model":{},"tokens":[{}]}})", model_, fmt::join(ids, ","))));
    const json::value* text = answer.if_contains(dialect_.decoded);
    if (text == nullptr || !text->is_string()) {
      return Fail(ErrorCode::kUnsupported, "no_tokenize", "tokenizer",
                  "/detokenize answered without `{}`", dialect_.decoded);
    }
    return std::string(text->get_string());
  }

  int32_t vocab_size() const override { return vocab_size_; }

  Result<int32_t> ChatOverhead() override {
    auto chat = Tokens(fmt::format(
        R"({{"model":{},"messages":[{{"role":"user","content":"{}"}}],"add_generation_prompt":true}})",
        model_, kSample));
    auto plain = Tokens(fmt::format(R"({{"model":{},"{}":"{}","add_special_tokens":false}})",
                                    model_, dialect_.text, kSample));
    if (!chat || !plain || chat->size() < plain->size()) return -1;
    return static_cast<int32_t>(chat->size() - plain->size());
  }

 private:
  Result<json::object> Ask(std::string_view path, const std::string& body) {
    Result<Fetcher::Answer> answer;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      answer = fetch_.Do(path, &body);
      if (answer && answer->status != 429 && answer->status != 503) break;
    }
    if (!answer) return tl::unexpected<Error>(std::move(answer.error()));
    if (answer->status != 200) {
      return Fail(ErrorCode::kUnsupported, "no_tokenize", "tokenizer", "{} answered {}: {}", path,
                  answer->status, ErrorMessageOf(answer->body));
    }
    boost::system::error_code error;
    json::value value = json::parse(answer->body, error);
    if (error || !value.is_object()) {
      return Fail(ErrorCode::kUnsupported, "no_tokenize", "tokenizer",
                  "{} did not answer a JSON object", path);
    }
    return std::move(value.get_object());
  }

  Result<std::vector<int32_t>> Tokens(const std::string& body) {
    VIVACE_ASSIGN(const json::object answer, Ask("/tokenize", body));
    const json::value* tokens = answer.if_contains("tokens");
    if (tokens == nullptr || !tokens->is_array()) {
      return Fail(ErrorCode::kUnsupported, "no_tokenize", "tokenizer",
                  "/tokenize answered without `tokens`");
    }
    std::vector<int32_t> ids;
    ids.reserve(tokens->get_array().size());
    for (const json::value& token : tokens->get_array()) {
      const int64_t* id = token.if_int64();
      if (id == nullptr || *id < 0 || *id >= limits::kMaxVocab) {
        return Fail(ErrorCode::kUnsupported, "no_tokenize", "tokenizer",
                    "/tokenize answered with what is no token id");
      }
      ids.push_back(static_cast<int32_t>(*id));
    }
    return ids;
  }

  bool Exists(int32_t id) {
    int32_t ids[kNeighbours];
    for (int32_t i = 0; i < kNeighbours; ++i) ids[i] = id + i;
    const auto text = Decode(ids);
    return text && !text->empty();
  }

  // No server tells, but each refuses or leaves out what it does not have.
  Status FindVocabulary() {
    if (!Exists(0)) {
      return Fail(ErrorCode::kUnsupported, "no_tokenize", "tokenizer",
                  "/detokenize gives no text for the first ids");
    }
    int32_t low = 0, high = limits::kMaxVocab;
    while (high - low > kNeighbours) {
      const int32_t middle = low + (high - low) / 2;
      (Exists(middle) ? low : high) = middle;
    }
    vocab_size_ = low + kNeighbours;
    while (vocab_size_ > low + 1) {  // the last neighbours may not be there
      const int32_t last = vocab_size_ - 1;
      const auto text = Decode(std::span(&last, 1));
      if (text && !text->empty()) break;
      --vocab_size_;
    }
    return {};
  }

  Fetcher fetch_;
  const std::string model_;  // as JSON
  Dialect dialect_ = kVllm;
  int32_t vocab_size_ = 0;
};

}  // namespace

Result<std::unique_ptr<TokenCounter>> MakeServerCounter(const Target& target,
                                                        const std::string& model) {
  auto counter = std::make_unique<ServerCounter>(target, model);
  VIVACE_RETURN_IF_ERROR(counter->Open());
  return std::unique_ptr<TokenCounter>(std::move(counter));
}

Result<std::unique_ptr<TokenCounter>> MakeFileCounter(const std::string& path) {
  VIVACE_ASSIGN(auto tokenizer, LoadTokenizer(path));
  return std::unique_ptr<TokenCounter>(std::make_unique<TokenizerCounter>(
      std::move(tokenizer), ReadChatTemplate(path).value_or("")));
}

}  // namespace vivace::load
