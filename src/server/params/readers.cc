#include "server/params/readers.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/limits.h"
#include "base/utf8.h"
#include "server/json/strict_json.h"
#include "server/params/conversation.h"

namespace vivace::server {
namespace {

Result<TokenId> ReadTokenId(std::string_view name, const json::value& value, int32_t vocab) {
  const bool huge = value.is_double() && std::fabs(value.get_double()) >= 0x1p63;
  const auto id = AsInteger(value);
  if (!id && !value.is_uint64() && !huge) return WrongType(name, "a token id", value);
  if (!id || *id < 0 || *id >= vocab) {
    return WrongValue(name, fmt::format("is {}; token ids of this model are 0 to {}",
                                        json::serialize(value), vocab - 1));
  }
  return static_cast<TokenId>(*id);
}

Result<std::vector<TokenId>> ReadTokenIds(std::string_view name, const json::array& list,
                                          int32_t vocab) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const auto& item : list) {
    // Lists are long: the name of an item is made for those that are refused.
    const int64_t* known = item.if_int64();
    if (known != nullptr && *known >= 0 && *known < vocab) {
      ids.push_back(static_cast<TokenId>(*known));
      continue;
    }
    VIVACE_ASSIGN(const TokenId id,
                  ReadTokenId(fmt::format("{}[{}]", name, ids.size()), item, vocab));
    ids.push_back(id);
  }
  return ids;
}

constexpr size_t kMaxReportedNameBytes = 64;
// A word is two runs of tokens at most, with and without a space before it.
constexpr size_t kMaxBadWords = limits::kMaxBadWords / 2;

constexpr std::string_view kPromptShapes =
    "a string, a list of strings, a list of token ids or a list of such lists";

}  // namespace

std::string ReportedName(std::string_view name) {
  return utf8::Repair(name.substr(0, kMaxReportedNameBytes));
}

Status ReportIgnored(std::string_view name, RequestParams* params) {
  if (params->ignored.size() >= limits::kMaxUnknownParams) {
    return Fail(ErrorCode::kInvalidArgument, "too_many_parameters", "",
                "the body has more than {} members that have no effect", limits::kMaxUnknownParams);
  }
  params->ignored.push_back(ReportedName(name));
  return {};
}

tl::unexpected<Error> WrongType(std::string_view name, std::string_view wanted,
                                const json::value& value) {
  return Fail(ErrorCode::kInvalidArgument, "invalid_type", std::string(name),
              "`{}` must be {}, not {}", name, wanted, KindName(value));
}

tl::unexpected<Error> WrongValue(std::string_view name, std::string_view rest) {
  return Fail(ErrorCode::kInvalidArgument, "invalid_value", std::string(name), "`{}` {}", name,
              rest);
}

Status ReadPrompt(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params) {
  if (const auto* text = value.if_string()) {
    params->prompts.emplace_back(std::string(*text));
    return {};
  }
  const auto* list = value.if_array();
  if (context.endpoint == kTokenize) return WrongType(name, "a string", value);
  if (list == nullptr) return WrongType(name, kPromptShapes, value);
  if (list->empty()) return WrongValue(name, "is an empty list; give at least one prompt");
  if (!list->front().is_string() && !list->front().is_array()) {
    VIVACE_ASSIGN(auto ids, ReadTokenIds(name, *list, context.vocab));
    params->prompts.emplace_back(std::move(ids));
    return {};
  }
  const size_t most =
      context.endpoint == kEmbeddings ? limits::kMaxEmbeddingInputs : limits::kMaxPrompts;
  if (list->size() > most) {
    return WrongValue(name,
                      fmt::format("has {} prompts; at most {} are allowed", list->size(), most));
  }
  for (const auto& item : *list) {
    const std::string path = fmt::format("{}[{}]", name, params->prompts.size());
    if (item.kind() != list->front().kind()) {
      const bool texts = list->front().is_string();
      return WrongType(path, texts ? "a string like the first" : "a list of token ids", item);
    }
    if (const auto* text = item.if_string()) {
      params->prompts.emplace_back(std::string(*text));
    } else {
      VIVACE_ASSIGN(auto ids, ReadTokenIds(path, item.get_array(), context.vocab));
      params->prompts.emplace_back(std::move(ids));
    }
  }
  return {};
}

Status ReadMessages(std::string_view name, const json::value& value, const ParamContext&,
                    RequestParams* params) {
  VIVACE_ASSIGN(params->messages, ReadTurnList(name, value));
  return {};
}

Status ReadTokens(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list of token ids", value);
  VIVACE_ASSIGN(params->tokens, ReadTokenIds(name, *list, context.vocab));
  params->has_tokens = true;
  return {};
}

Status ReadStop(std::string_view name, const json::value& value, const ParamContext&,
                RequestParams* params) {
  const auto* list = value.if_array();
  const auto add = [&](const json::value& item) -> Status {
    const auto* text = item.if_string();
    if (text == nullptr && list != nullptr) {
      return WrongType(fmt::format("{}[{}]", name, params->stop.size()), "a string", item);
    }
    if (text == nullptr) return WrongType(name, "a string or a list of strings", item);
    if (text->empty()) return WrongValue(name, "must not hold an empty string");
    if (text->size() > limits::kMaxStopStringBytes) {
      return WrongValue(name, fmt::format("has a string of {} bytes; at most {} are allowed",
                                          text->size(), limits::kMaxStopStringBytes));
    }
    params->stop.emplace_back(*text);
    return {};
  };
  if (list == nullptr) return add(value);
  if (list->size() > limits::kMaxStopStrings) {
    return WrongValue(name, fmt::format("has {} strings; at most {} are allowed", list->size(),
                                        limits::kMaxStopStrings));
  }
  for (const auto& item : *list) VIVACE_RETURN_IF_ERROR(add(item));
  return {};
}

Status ReadStopTokenIds(std::string_view name, const json::value& value,
                        const ParamContext& context, RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list of token ids", value);
  if (list->size() > limits::kMaxStopTokenIds) {
    return WrongValue(name, fmt::format("has {} ids; at most {} are allowed", list->size(),
                                        limits::kMaxStopTokenIds));
  }
  VIVACE_ASSIGN(params->sampling.stop_token_ids, ReadTokenIds(name, *list, context.vocab));
  return {};
}

Status ReadAllowedTokenIds(std::string_view name, const json::value& value,
                           const ParamContext& context, RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list of token ids", value);
  if (list->empty()) return WrongValue(name, "is empty, so nothing could be said; give ids");
  if (list->size() > static_cast<size_t>(context.vocab)) {
    return WrongValue(
        name, fmt::format("has {} ids; the vocabulary has {}", list->size(), context.vocab));
  }
  VIVACE_ASSIGN(params->sampling.allowed_token_ids, ReadTokenIds(name, *list, context.vocab));
  return {};
}

Status ReadBadWords(std::string_view name, const json::value& value, const ParamContext&,
                    RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list of strings", value);
  if (list->size() > kMaxBadWords) {
    return WrongValue(
        name, fmt::format("has {} words; at most {} are allowed", list->size(), kMaxBadWords));
  }
  for (const auto& item : *list) {
    const auto* text = item.if_string();
    if (text == nullptr) {
      return WrongType(fmt::format("{}[{}]", name, params->bad_words.size()), "a string", item);
    }
    if (text->empty()) return WrongValue(name, "must not hold an empty string");
    if (text->size() > limits::kMaxStopStringBytes) {
      return WrongValue(name, fmt::format("has a word of {} bytes; at most {} are allowed",
                                          text->size(), limits::kMaxStopStringBytes));
    }
    params->bad_words.emplace_back(*text);
  }
  return {};
}

Status ReadLogitBias(std::string_view name, const json::value& value, const ParamContext& context,
                     RequestParams* params) {
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "an object of token id to number", value);
  if (object->size() > limits::kMaxLogitBias) {
    return WrongValue(name, fmt::format("has {} entries; at most {} are allowed", object->size(),
                                        limits::kMaxLogitBias));
  }
  auto& bias = params->sampling.logit_bias;
  for (const auto& [key, number] : *object) {
    int32_t id = -1;
    const char* end = key.data() + key.size();
    const auto [stop, ec] = std::from_chars(key.data(), end, id);
    if (ec != std::errc() || stop != end || id < 0 || id >= context.vocab) {
      return WrongValue(name, fmt::format("has a key that is not a token id of this model, 0 to {}",
                                          context.vocab - 1));
    }
    if (!number.is_number()) return WrongType(fmt::format("{}.{}", name, id), "a number", number);
    const double amount = number.to_number<double>();
    if (!(amount >= -100.0 && amount <= 100.0)) {
      return WrongValue(name,
                        fmt::format("has {} for token {}; values are -100 to 100", amount, id));
    }
    bias.emplace_back(id, static_cast<float>(amount));
  }
  // "7" and "07" are two members and one token.
  std::sort(bias.begin(), bias.end());
  const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(bias.begin(), bias.end(), same_id) != bias.end()) {
    return WrongValue(name, "names a token twice");
  }
  return {};
}

Status ReadStreamOptions(std::string_view name, const json::value& value, const ParamContext&,
                         RequestParams* params) {
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "an object", value);
  params->has_stream_options = true;
  for (const auto& [key, flag] : *object) {
    bool* target = nullptr;
    if (key == "include_usage") target = &params->include_usage;
    if (key == "continuous_usage_stats") target = &params->continuous_usage_stats;
    if (target == nullptr) {
      VIVACE_RETURN_IF_ERROR(
          ReportIgnored(fmt::format("{}.{}", name, std::string_view(key)), params));
      continue;
    }
    if (flag.is_null()) continue;
    if (!flag.is_bool()) {
      return WrongType(fmt::format("{}.{}", name, std::string_view(key)), "a boolean", flag);
    }
    *target = flag.get_bool();
  }
  return {};
}

Status ReadDocuments(std::string_view name, const json::value& value, const ParamContext&,
                     RequestParams* params) {
  const auto* list = value.if_array();
  if (list == nullptr) return WrongType(name, "a list", value);
  if (list->size() > limits::kMaxDocuments) {
    return WrongValue(name, fmt::format("has {} documents; at most {} are allowed", list->size(),
                                        limits::kMaxDocuments));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", name, i);
    const auto* object = (*list)[i].if_object();
    if (object == nullptr) return WrongType(path, "an object", (*list)[i]);
    for (const auto& [key, text] : *object) {
      if (!text.is_string()) {
        return WrongType(fmt::format("{}.{}", path, std::string_view(key)), "a string", text);
      }
    }
  }
  if (!list->empty()) params->documents = list;
  return {};
}

Status ReadReasoningEffort(std::string_view name, const json::value& value, const ParamContext&,
                           RequestParams* params) {
  constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                           "high", "xhigh",   "max"};
  if (!value.is_string()) return WrongType(name, "a string", value);
  const std::string_view effort = value.get_string();
  if (std::find(std::begin(kEfforts), std::end(kEfforts), effort) == std::end(kEfforts)) {
    return WrongValue(name, "must be none, minimal, low, medium, high, xhigh or max");
  }
  params->reasoning_effort = &value;
  return {};
}

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= limits::kMaxRequestIdBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == ':' || c == '-';
         });
}

Status ReadRequestId(std::string_view name, const json::value& value, const ParamContext&,
                     RequestParams* params) {
  if (!value.is_string()) return WrongType(name, "a string", value);
  const std::string_view id = value.get_string();
  if (!IsRequestId(id)) {
    return WrongValue(name, fmt::format("must have 1 to {} letters, digits and ._:-",
                                        limits::kMaxRequestIdBytes));
  }
  params->request_id = id;
  return {};
}

Status ReadChatTemplateKwargs(std::string_view name, const json::value& value, const ParamContext&,
                              RequestParams* params) {
  const auto* object = value.if_object();
  if (object == nullptr) return WrongType(name, "an object", value);
  // These are the request's own; a template must not be handed others by the back door.
  for (const std::string_view reserved :
       {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"}) {
    if (object->contains(reserved)) {
      return WrongValue(name, fmt::format("must not hold \"{}\"", reserved));
    }
  }
  params->chat_template_kwargs = object;
  return {};
}

}  // namespace vivace::server
