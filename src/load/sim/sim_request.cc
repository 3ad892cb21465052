#include "load/sim/sim_request.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <limits>

#include "base/json_text.h"
#include "base/limits.h"
#include "load/sim/sim_tokens.h"
#include "server/json/strict_json.h"

namespace vivace::load {
namespace {

namespace json = boost::json;

constexpr int64_t kTemplateTokens = 4;  // that a simulated chat template puts around a message

tl::unexpected<Error> Wrong(std::string field, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, "invalid_value", field, "`{}` {}", field, what);
}

Result<json::object> ReadObject(std::string_view body) {
  VIVACE_ASSIGN(json::value value, server::ParseStrictJson(body));
  if (!value.is_object()) return Wrong("body", "must be an object");
  return std::move(value.get_object());
}

Status CheckModel(const json::object& object, const SimOptions& options) {
  const json::value* model = object.if_contains("model");
  if (model == nullptr) return {};
  if (!model->is_string()) return Wrong("model", "must be a string");
  if (model->get_string() == options.model) return {};
  return Fail(ErrorCode::kNotFound, "model_not_found", "model",
              "The model `{}` does not exist; this server has `{}`.",
              std::string_view(model->get_string()), options.model);
}

Result<int64_t> CountMessages(const json::object& object) {
  const json::value* messages = object.if_contains("messages");
  if (messages == nullptr || !messages->is_array() || messages->get_array().empty()) {
    return Wrong("messages", "must be a list of messages");
  }
  int64_t tokens = 0;
  for (const json::value& message : messages->get_array()) {
    boost::system::error_code error;
    const json::value* content = message.find_pointer("/content", error);
    if (content == nullptr || !content->is_string()) {
      return Wrong("messages", "must have `content`, a string, each");
    }
    tokens += kTemplateTokens + SimCount(content->get_string());
  }
  return tokens;
}

Result<int64_t> CountPrompt(const json::object& object) {
  const json::value* prompt = object.if_contains("prompt");
  if (prompt != nullptr && prompt->is_string()) return SimCount(prompt->get_string());
  if (prompt == nullptr || !prompt->is_array()) {
    return Wrong("prompt", "must be a string or a list of token ids");
  }
  for (const json::value& id : prompt->get_array()) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= kSimVocabulary) {
      return Wrong("prompt", "has what is no token id of this server");
    }
  }
  return static_cast<int64_t>(prompt->get_array().size());
}

Result<bool> ReadBool(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return false;
  if (!value->is_bool()) return Wrong(std::string(name), "must be true or false");
  return value->get_bool();
}

Status ReadLength(const json::object& object, SimRequest* request) {
  for (const std::string_view name : {"max_tokens", "max_completion_tokens"}) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_int64() || value->get_int64() < 1 ||
        value->get_int64() > limits::kMaxSimTokens) {
      return Wrong(std::string(name), fmt::format("must be 1 to {}", limits::kMaxSimTokens));
    }
    request->max_tokens = static_cast<int32_t>(value->get_int64());
  }
  return {};
}

Status ReadStreamOptions(const json::object& object, const SimOptions& options,
                         SimRequest* request) {
  const json::value* value = object.if_contains("stream_options");
  if (value == nullptr || value->is_null()) return {};
  if (!value->is_object()) return Wrong("stream_options", "must be an object");
  VIVACE_ASSIGN(request->usage, ReadBool(value->get_object(), "include_usage"));
  if (!options.continuous_usage && value->get_object().contains("continuous_usage_stats")) {
    return Wrong("stream_options.continuous_usage_stats", "is not known to this server");
  }
  VIVACE_ASSIGN(request->continuous_usage, ReadBool(value->get_object(), "continuous_usage_stats"));
  return {};
}

}  // namespace

Result<SimRequest> ReadSimRequest(std::string_view body, bool chat, const SimOptions& options) {
  VIVACE_ASSIGN(const json::object object, ReadObject(body));
  VIVACE_RETURN_IF_ERROR(CheckModel(object, options));
  SimRequest request;
  request.chat = chat;
  VIVACE_ASSIGN(request.prompt_tokens, chat ? CountMessages(object) : CountPrompt(object));
  VIVACE_ASSIGN(request.stream, ReadBool(object, "stream"));
  VIVACE_RETURN_IF_ERROR(ReadLength(object, &request));
  VIVACE_RETURN_IF_ERROR(ReadStreamOptions(object, options, &request));
  return request;
}

SimWriter::SimWriter(const SimRequest& request, const std::string& model, uint64_t number)
    : request_(request) {
  const char* object = request.chat ? (request.stream ? "chat.completion.chunk" : "chat.completion")
                                    : "text_completion";
  head_ = fmt::format(R"({{"id":"{}-{}","object":"{}","created":0,"model":{},"choices":)",
                      request.chat ? "chatcmpl" : "cmpl", number, object, JsonQuoted(model));
}

std::string SimWriter::Usage(int32_t tokens) const {
  return fmt::format(R"("usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                     R"("prompt_tokens_details":{{"cached_tokens":0}}}})",
                     request_.prompt_tokens, tokens, request_.prompt_tokens + tokens);
}

std::string SimWriter::Event(std::string_view delta, std::string_view finish, int32_t so_far,
                             bool with_usage) const {
  return fmt::format("data: {}[{{\"index\":0,{},\"finish_reason\":{}}}]{}{}}}\n\n", head_, delta,
                     finish, with_usage ? "," : "", with_usage ? Usage(so_far) : "");
}

std::string SimWriter::Opening() const {
  if (!request_.chat) return "";
  return Event(R"("delta":{"role":"assistant","content":""})", "null", 0,
               request_.continuous_usage);
}

std::string SimWriter::Tokens(int32_t tokens, int32_t so_far) const {
  std::string words;
  for (int32_t i = so_far - tokens; i < so_far; ++i) {
    fmt::format_to(std::back_inserter(words), " t{}", i % kSimVocabulary);
  }
  return Event(request_.chat ? fmt::format(R"("delta":{{"content":"{}"}})", words)
                             : fmt::format(R"("text":"{}")", words),
               "null", so_far, request_.continuous_usage);
}

std::string SimWriter::Closing(int32_t tokens) const {
  std::string out = Event(request_.chat ? R"("delta":{})" : R"("text":"")", "\"length\"", tokens,
                          request_.continuous_usage);
  if (request_.usage) out += fmt::format("data: {}[],{}}}\n\n", head_, Usage(tokens));
  return out + "data: [DONE]\n\n";
}

std::string SimWriter::Whole(int32_t tokens) const {
  std::string words;
  for (int32_t i = 0; i < tokens; ++i) {
    fmt::format_to(std::back_inserter(words), " t{}", i % kSimVocabulary);
  }
  const std::string text =
      request_.chat ? fmt::format(R"("message":{{"role":"assistant","content":"{}"}})", words)
                    : fmt::format(R"("text":"{}")", words);
  return fmt::format(R"({}[{{"index":0,{},"finish_reason":"length"}}],{}}})", head_, text,
                     Usage(tokens));
}

Result<std::string> AnswerSimTokenize(std::string_view body) {
  VIVACE_ASSIGN(const json::object object, ReadObject(body));
  std::string text;
  if (object.contains("messages")) {
    VIVACE_ASSIGN(const int64_t count, CountMessages(object));
    for (int64_t i = 0; i < count; ++i) text += " t0";
  } else if (const json::value* prompt = object.if_contains("prompt");
             prompt != nullptr && prompt->is_string()) {
    text = prompt->get_string();
  } else {
    return Wrong("prompt", "must be a string");
  }
  const std::vector<int32_t> ids = SimEncode(text);
  return fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}]}})", ids.size(),
                     std::numeric_limits<int32_t>::max(), fmt::join(ids, ","));
}

Result<std::string> AnswerSimDetokenize(std::string_view body) {
  VIVACE_ASSIGN(const json::object object, ReadObject(body));
  const json::value* tokens = object.if_contains("tokens");
  if (tokens == nullptr || !tokens->is_array() ||
      tokens->get_array().size() > limits::kMaxDetokenizeTokens) {
    return Wrong("tokens", "must be a list of token ids");
  }
  std::vector<int32_t> ids;
  for (const json::value& token : tokens->get_array()) {
    const int64_t* id = token.if_int64();
    const bool fits = id != nullptr && *id >= 0 && *id < kSimVocabulary;
    ids.push_back(fits ? static_cast<int32_t>(*id) : -1);
  }
  return fmt::format(R"({{"prompt":{}}})", JsonQuoted(SimDecode(ids)));
}

}  // namespace vivace::load
