// A user's own prompts, in the file's order: {"prompt": "..."}, {"prompt": [ids]} or {"messages":
// [...]}, with an output length and a time of arrival where it has them.
#include <fmt/format.h>

#include <filesystem>

#include "base/limits.h"
#include "load/datasets/entries.h"
#include "load/datasets/makers.h"
#include "load/datasets/prompt_maker.h"

namespace vivace::load {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::string_view kOutputNames[] = {"output_len", "output_length", "output_tokens",
                                             "max_tokens", "max_completion_tokens"};
constexpr double kMostMs = 1e14;  // of any clock: Unix time in milliseconds is 1.8e12

class Reader {
 public:
  Reader(const EntryFile& file, const DatasetOptions& options, TokenCounter* counter,
         PromptMaker* maker)
      : file_(file), options_(options), counter_(counter), maker_(maker) {}

  Result<PlannedRequest> Read(const Entry& entry) const {
    VIVACE_ASSIGN(const object parsed, file_.Parse(entry));
    VIVACE_ASSIGN(PlannedRequest request, ReadPrompt(entry, parsed));
    request.output_tokens = options_.output_len;
    for (std::string_view name : kOutputNames) {
      VIVACE_ASSIGN(const std::optional<int64_t> length,
                    file_.Count(entry, parsed, name, 1, limits::kMaxPromptTokens));
      if (length && !options_.output_len_given) {
        request.output_tokens = static_cast<int32_t>(*length);
      }
    }
    VIVACE_ASSIGN(const std::optional<double> at_ms,
                  file_.Number(entry, parsed, "timestamp", 0, kMostMs));
    if (at_ms) request.at_s = *at_ms / 1e3;
    return request;
  }

 private:
  Result<PlannedRequest> ReadPrompt(const Entry& entry, const object& parsed) const {
    const value* prompt = parsed.if_contains("prompt");
    const value* messages = parsed.if_contains("messages");
    if ((prompt == nullptr) == (messages == nullptr)) {
      return file_.Broken(entry, "give one of \"prompt\" and \"messages\"");
    }
    if (messages != nullptr) return ReadMessages(entry, *messages);
    if (prompt->is_string()) {
      PromptMaker::Prompt text{std::string(prompt->get_string()), {}, 0};
      VIVACE_ASSIGN(text.tokens, maker_->Count(text.text));
      if (options_.token_ids && counter_ != nullptr && !options_.chat) {
        VIVACE_ASSIGN(text.ids, counter_->Encode(text.text));
      }
      return maker_->Plan(std::move(text), 0);
    }
    return ReadIds(entry, *prompt);
  }

  Result<PlannedRequest> ReadIds(const Entry& entry, const value& prompt) const {
    if (!prompt.is_array() || prompt.get_array().empty()) {
      return file_.Broken(entry, "\"prompt\" is neither a text nor an array of token ids");
    }
    if (options_.chat) {
      return file_.Broken(entry, "token ids can't go to a chat endpoint: use /v1/completions");
    }
    if (prompt.get_array().size() > static_cast<size_t>(limits::kMaxPromptTokens)) {
      return file_.Broken(entry, "more than {} token ids", limits::kMaxPromptTokens);
    }
    PromptIds ids;
    for (const value& item : prompt.get_array()) {
      const int64_t* id = item.if_int64();
      if (id == nullptr || *id < 0 || *id >= limits::kMaxVocab) {
        return file_.Broken(entry, "\"prompt\" has {}, which is no token id",
                            std::string(boost::json::serialize(item)).substr(0, 64));
      }
      ids.push_back(static_cast<int32_t>(*id));
    }
    PlannedRequest request;
    request.prompt_tokens = static_cast<int32_t>(ids.size());
    request.prompt = std::move(ids);
    return request;
  }

  Result<PlannedRequest> ReadMessages(const Entry& entry, const value& list) const {
    if (!options_.chat && !options_.renders) {
      return file_.Broken(entry,
                          "messages need a chat endpoint: use --endpoint "
                          "/v1/chat/completions");
    }
    if (!list.is_array() || list.get_array().empty() ||
        list.get_array().size() > limits::kMaxMessages) {
      return file_.Broken(entry, "\"messages\" is not an array of 1 to {} messages",
                          limits::kMaxMessages);
    }
    Messages messages;
    for (const value& item : list.get_array()) {
      const value* role = item.is_object() ? item.get_object().if_contains("role") : nullptr;
      const value* content = item.is_object() ? item.get_object().if_contains("content") : nullptr;
      if (role == nullptr || !role->is_string() || content == nullptr || !content->is_string()) {
        return file_.Broken(entry, "message {} has no \"role\" and \"content\" that are texts",
                            messages.size() + 1);
      }
      messages.push_back({std::string(role->get_string()), std::string(content->get_string())});
    }
    PlannedRequest request;
    for (const Message& message : messages)
      request.prompt_tokens += PromptMaker::GuessTokens(message.content);
    request.prompt = std::move(messages);
    return request;
  }

  const EntryFile& file_;
  const DatasetOptions& options_;
  TokenCounter* counter_;
  PromptMaker* maker_;
};

}  // namespace

Result<Workload> MakeJsonl(const DatasetOptions& options, TokenCounter* counter) {
  DatasetOptions texts = options;
  texts.token_ids = options.token_ids && counter != nullptr;
  VIVACE_ASSIGN(PromptMaker maker,
                PromptMaker::Create(texts, counter, PromptMaker::Vocabulary::kWords));
  VIVACE_ASSIGN(const EntryFile file, EntryFile::Open(options.path, options.num_prompts));
  const Reader reader(file, options, counter, &maker);
  WorkloadBuilder builder(std::filesystem::path(options.path).filename().string(), options.seed);
  bool timed = false;
  double first_s = 0, last_s = -1;
  for (const Entry& entry : file.entries()) {
    VIVACE_ASSIGN(PlannedRequest request, reader.Read(entry));
    if (builder.size() == 0) timed = request.at_s >= 0;
    if (timed != (request.at_s >= 0)) {
      return file.Broken(entry, "either all lines have a \"timestamp\" or none");
    }
    if (timed && request.at_s < last_s) {
      return file.Broken(entry, "its \"timestamp\" is before the line's above: sort the file");
    }
    last_s = request.at_s;
    if (timed) {  // the first is the start, whatever clock they are of
      if (builder.size() == 0) first_s = request.at_s;
      request.at_s -= first_s;
    }
    VIVACE_RETURN_IF_ERROR(builder.Add(std::move(request)));
  }
  return builder.Finish(maker.Remark());
}

}  // namespace vivace::load
