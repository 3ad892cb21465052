#include "load/client/request_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <initializer_list>
#include <variant>

#include "base/json_text.h"
#include "base/limits.h"

namespace vivace::load {
namespace {

namespace json = boost::json;

// What a member of --extra-body may not be, and why.
struct Forbidden {
  std::string_view name, why;
};
constexpr Forbidden kForbidden[] = {
    {"prompt", "the dataset makes the prompts"},
    {"messages", "the dataset makes the messages"},
    {"stream", "latencies are those of streams"},
    {"n", "one answer a request is measured"},
};
// Other names for the length of an answer.
constexpr std::string_view kLengths[] = {"max_tokens", "max_completion_tokens", "n_predict"};

// More events than so many a token, and some, are a stream that does not end.
constexpr int64_t kEventsPerToken = 2;
constexpr int64_t kSpareEvents = 256;

json::object StreamOptions(const BodyOptions& options) {
  json::object stream;
  if (options.usage) stream["include_usage"] = true;
  if (options.usage && options.continuous_usage) stream["continuous_usage_stats"] = true;
  return stream;
}

json::object SharedMembers(const BodyOptions& options) {
  json::object members;
  if (!options.model.empty()) members["model"] = options.model;
  members["stream"] = true;
  if (options.usage) members["stream_options"] = StreamOptions(options);
  const auto add = [&members](std::string_view name, const auto& value) {
    if (value) members[name] = *value;
  };
  add("temperature", options.temperature);
  add("top_p", options.top_p);
  add("top_k", options.top_k);
  add("min_p", options.min_p);
  add("frequency_penalty", options.frequency_penalty);
  add("presence_penalty", options.presence_penalty);
  add("repetition_penalty", options.repetition_penalty);
  if (options.ignore_eos) members["ignore_eos"] = true;
  for (const auto& member : options.extra) {
    if (member.key() == "stream_options" && member.value().is_object()) {
      json::object merged = StreamOptions(options);
      for (const auto& own : member.value().get_object()) merged[own.key()] = own.value();
      members["stream_options"] = std::move(merged);
    } else {
      members[member.key()] = member.value();
    }
  }
  return members;
}

void AppendMessage(std::string_view role, std::string_view content, std::string* body) {
  if (!body->ends_with('[')) body->push_back(',');
  *body += R"({"role":)";
  AppendJsonString(*body, role);
  *body += R"(,"content":)";
  AppendJsonString(*body, content);
  body->push_back('}');
}

}  // namespace

void History::Add(const PlannedRequest& turn, std::string_view answer) {
  if (const auto* words = std::get_if<std::string>(&turn.prompt)) {
    text += *words;
    text += answer;
    messages.push_back({"user", *words});
  } else if (const auto* added = std::get_if<Messages>(&turn.prompt)) {
    messages.insert(messages.end(), added->begin(), added->end());
  }
  messages.push_back({"assistant", std::string(answer)});
}

Result<BodyWriter> BodyWriter::Create(const BodyOptions& options) {
  BodyWriter writer;
  writer.chat_ = options.chat;
  for (const Forbidden& forbidden : kForbidden) {
    if (!options.extra.contains(forbidden.name)) continue;
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "extra-body",
                "--extra-body may not have `{}`: {}", forbidden.name, forbidden.why);
  }
  for (const std::string_view name : kLengths) {
    const json::value* length = options.extra.if_contains({name.data(), name.size()});
    if (length == nullptr) continue;
    writer.sets_length_ = false;
    if (length->is_int64()) {
      writer.extra_length_ = std::max(writer.extra_length_, length->get_int64());
    }
  }
  writer.members_ = json::serialize(SharedMembers(options));
  writer.members_[0] = ',';
  return writer;
}

Status BodyWriter::Check(const PlannedRequest& request) const {
  if (chat_ && std::holds_alternative<PromptIds>(request.prompt)) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "endpoint",
                "prompts of token ids can be sent to /v1/completions only; for chat let the "
                "dataset make text");
  }
  if (!chat_ && std::holds_alternative<Messages>(request.prompt)) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "endpoint",
                "the dataset has chat messages; give --endpoint /v1/chat/completions");
  }
  if (request.conversation >= 0 && std::holds_alternative<PromptIds>(request.prompt)) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "turns",
                "a conversation cannot be sent as token ids: the answers in between come as text");
  }
  return {};
}

int64_t BodyWriter::MostEvents(const PlannedRequest& request) const {
  const int64_t tokens = sets_length_ ? request.output_tokens : extra_length_;
  if (tokens <= 0 || tokens > limits::kMaxLoadEvents) return limits::kMaxLoadEvents;
  return std::min(limits::kMaxLoadEvents, kEventsPerToken * tokens + kSpareEvents);
}

void BodyWriter::WriteMessages(const PlannedRequest& request, const History* before,
                               std::string* body) const {
  *body += R"({"messages":[)";
  if (before != nullptr) {
    for (const Message& message : before->messages) {
      AppendMessage(message.role, message.content, body);
    }
  }
  if (const auto* words = std::get_if<std::string>(&request.prompt)) {
    AppendMessage("user", *words, body);
  } else if (const auto* messages = std::get_if<Messages>(&request.prompt)) {
    for (const Message& message : *messages) AppendMessage(message.role, message.content, body);
  }
  body->push_back(']');
}

void BodyWriter::WritePrompt(const PlannedRequest& request, const History* before,
                             std::string* body) const {
  *body += R"({"prompt":)";
  if (const auto* ids = std::get_if<PromptIds>(&request.prompt)) {
    fmt::format_to(std::back_inserter(*body), "[{}]", fmt::join(*ids, ","));
  } else if (const auto* words = std::get_if<std::string>(&request.prompt)) {
    AppendJsonString(*body, before == nullptr ? *words : before->text + *words);
  }
}

std::string BodyWriter::Write(const PlannedRequest& request, const History* before) const {
  std::string body;
  if (chat_) {
    WriteMessages(request, before, &body);
  } else {
    WritePrompt(request, before, &body);
  }
  if (sets_length_ && request.output_tokens > 0) {
    fmt::format_to(std::back_inserter(body), R"(,"max_tokens":{})", request.output_tokens);
  }
  return body += members_;
}

PlannedRequest Stranger(const PlannedRequest& request, int number) {
  PlannedRequest other = request;
  other.conversation = -1;
  other.at_s = -1;
  const std::string greeting = fmt::format("Warm-up {}. ", number);
  if (auto* ids = std::get_if<PromptIds>(&other.prompt)) {
    std::reverse(ids->begin(), ids->end());
    if (!ids->empty()) {
      const auto turn = static_cast<ptrdiff_t>(static_cast<size_t>(number + 1) % ids->size());
      std::rotate(ids->begin(), ids->begin() + turn, ids->end());
    }
  } else if (auto* words = std::get_if<std::string>(&other.prompt)) {
    words->insert(0, greeting);
  } else if (auto* messages = std::get_if<Messages>(&other.prompt)) {
    if (!messages->empty()) messages->front().content.insert(0, greeting);
  }
  return other;
}

}  // namespace vivace::load
