#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/params/conversation.h"
#include "server/params/readers.h"
#include "server/params/responses_readers.h"
#include "server/params/table.h"

namespace vivace::server {
namespace {

// Reads one member by its row's kind. Errors name the member as the client wrote it.
struct FieldReader {
  std::string_view name;
  const json::value& value;
  const ParamContext& context;
  RequestParams* params;

  Status operator()(const IntField& field) const {
    // Clients write large integers as 1e30: a matter of range, not of type.
    const bool huge = value.is_double() && std::fabs(value.get_double()) >= 0x1p63;
    if (huge || value.is_uint64()) return OutOfRange(field);
    const auto number = AsInteger(value);
    if (!number) return WrongType(name, "an integer", value);
    if (*number < field.min || *number > field.max) return OutOfRange(field);
    field.set(*params, *number);
    return {};
  }

  Status operator()(const NumberField& field) const {
    if (!value.is_number()) return WrongType(name, "a number", value);
    const double number = value.to_number<double>();
    const bool low = field.min_excluded ? number <= field.min : number < field.min;
    if (low || number > field.max || std::isnan(number)) {
      return WrongValue(
          name, fmt::format("is {}; it must be {} {} and at most {}", number,
                            field.min_excluded ? "above" : "at least", field.min, field.max));
    }
    // A number just above an excluded bound must not become the bound as a float.
    float narrow = static_cast<float>(number);
    if (field.min_excluded && narrow <= static_cast<float>(field.min)) {
      narrow = std::nextafter(static_cast<float>(field.min), INFINITY);
    }
    field.set(*params, narrow);
    return {};
  }

  Status operator()(const BoolField& field) const {
    if (!value.is_bool()) return WrongType(name, "a boolean", value);
    field.set(*params, value.get_bool());
    return {};
  }

  Status operator()(const StringField& field) const {
    if (!value.is_string()) return WrongType(name, "a string", value);
    const std::string_view text = value.get_string();
    if (text.size() > field.max_bytes) {
      return WrongValue(
          name, fmt::format("has {} bytes; at most {} are allowed", text.size(), field.max_bytes));
    }
    field.set(*params, text);
    return {};
  }

  Status operator()(const CustomField& field) const {
    return field.read(name, value, context, params);
  }

  Status operator()(const RefusedField& field) const {
    if (field.false_passes && value.is_bool() && !value.get_bool()) return {};
    if (value.is_number() && value.to_number<double>() == field.passes) return {};
    return Fail(ErrorCode::kUnsupported, "unsupported_parameter", std::string(name),
                "`{}` is not supported: {}", name, field.why);
  }

  Status operator()(const IgnoredField& field) const {
    if (field.false_passes && value.is_bool() && !value.get_bool()) return {};
    return ReportIgnored(name, params);
  }

 private:
  tl::unexpected<Error> OutOfRange(const IntField& field) const {
    return WrongValue(name, fmt::format("is out of range; it must be an integer from {} to {}",
                                        field.min, field.max));
  }
};

Status ReadMember(std::string_view name, const json::value& value, const ParamContext& context,
                  RequestParams* params) {
  const ParamRow* row = FindParam(name, context.endpoint);
  if (value.is_null()) return {};
  if (row == nullptr) return ReportIgnored(name, params);
  if (name == row->alias) params->renamed.push_back({std::string(name), std::string(row->name)});
  VIVACE_RETURN_IF_ERROR(ReadParam(*row, name, value, context, params));
  const auto* custom = std::get_if<CustomField>(&row->field);
  if (custom == nullptr || custom->members == nullptr) return {};
  return CheckMembers(value, std::string(name), *custom->members, params);
}

// The name that the client used.
std::string_view WrittenName(const Reports& reports, std::string_view name) {
  const auto found = std::ranges::find(reports.renamed, name, &Reports::Renamed::name);
  return found == reports.renamed.end() ? name : std::string_view(found->alias);
}

// A parameter under its name and its alias at once has no one meaning.
Status RefuseBothNames(const json::object& body, Endpoint endpoint) {
  const auto given = [&](std::string_view name) {
    const json::value* value = body.if_contains(name);
    return value != nullptr && !value->is_null();
  };
  for (const ParamRow& row : ParamTable()) {
    if (row.alias.empty() || (row.endpoints & endpoint) == 0) continue;
    if (given(row.name) && given(row.alias)) {
      return WrongValue(row.alias,
                        fmt::format("is another name of `{}`; give one of them", row.name));
    }
  }
  return {};
}

Status RequireInput(const RequestParams& params) {
  const auto missing = [](std::string_view name) {
    return Fail(ErrorCode::kInvalidArgument, "missing_parameter", std::string(name),
                "`{}` is required", name);
  };
  switch (params.endpoint) {
    case kMessages:
      if (!params.max_tokens) return missing("max_tokens");
      [[fallthrough]];
    case kChat:
    case kResponses:
    case kCountTokens:
      if (params.messages == nullptr) return missing(InputName(params.endpoint));
      break;
    case kCompletions:
      if (params.prompts.empty()) return missing("prompt");
      break;
    case kTokenize:
      if (params.messages == nullptr && params.prompts.empty()) return missing("prompt");
      if (params.messages != nullptr && !params.prompts.empty()) {
        return WrongValue("messages", "cannot be given together with `prompt`");
      }
      break;
    case kDetokenize:
      if (!params.has_tokens) return missing("tokens");
      break;
    case kEmbeddings:
      if (params.prompts.empty()) return missing("input");
      break;
    case kRerank:
      if (params.first_texts.empty()) return missing("query");
      if (params.second_texts.empty()) return missing("documents");
      break;
    case kScore:
      if (params.first_texts.empty()) return missing("text_1");
      if (params.second_texts.empty()) return missing("text_2");
      if (params.first_texts.size() > 1 &&
          params.first_texts.size() != params.second_texts.size()) {
        return WrongValue(WrittenName(params, "text_1"),
                          fmt::format("has {} texts and `{}` has {}; give one, or as many",
                                      params.first_texts.size(), WrittenName(params, "text_2"),
                                      params.second_texts.size()));
      }
      break;
  }
  return {};
}

}  // namespace

std::string_view InputName(Endpoint endpoint) {
  if (endpoint == kResponses) return "input";
  return (endpoint & kConversations) != 0 ? "messages" : "prompt";
}

std::string_view ClientName(Endpoint endpoint, std::string_view name) {
  struct Spelling {
    EndpointSet endpoints;
    std::string_view chat, theirs;
  };
  constexpr EndpointSet kAnthropic = kMessages | kCountTokens;
  static constexpr Spelling kSpellings[] = {
      {kAnthropic, "parallel_tool_calls", "tool_choice.disable_parallel_tool_use"},
      {kAnthropic, "reasoning_effort", "output_config.effort"},
      {kAnthropic, "thinking_token_budget", "thinking.budget_tokens"},
      {kAnthropic, "tools.parameters", "tools.input_schema"},
      {kResponses, "reasoning_effort", "reasoning.effort"},
  };
  for (const Spelling& spelling : kSpellings) {
    if ((spelling.endpoints & endpoint) != 0 && spelling.chat == name) return spelling.theirs;
  }
  return name;
}

Status CheckStrict(const Reports& reports) {
  if (!reports.strict || reports.empty()) return {};
  if (!reports.ignored.empty()) {
    const std::string& name = reports.ignored.front();
    return Fail(ErrorCode::kUnsupported, "strict_ignored", name,
                "`{}` would have no effect, and the request is strict: leave it out", name);
  }
  if (!reports.clamped.empty()) {
    const auto& clamp = reports.clamped.front();
    const std::string name(WrittenName(reports, clamp.name));
    return Fail(ErrorCode::kInvalidArgument, "strict_clamped", name,
                "`{}` is {} but only {} can be given, and the request is strict", name,
                clamp.wanted, clamp.given);
  }
  const auto& rename = reports.renamed.front();
  return Fail(ErrorCode::kInvalidArgument, "strict_renamed", rename.alias,
              "`{}` is another name of `{}`, and the request is strict: use that one", rename.alias,
              rename.name);
}

Status CombineParams(RequestParams* params) {
  const auto written = [&](std::string_view name) { return WrittenName(*params, name); };
  ShowTurns(params);
  VIVACE_RETURN_IF_ERROR(RequireInput(*params));
  if (params->truncate_prompt_tokens == 0) {
    return WrongValue("truncate_prompt_tokens", "is 0; give at least 1, or -1 for what fits");
  }
  if ((params->endpoint & (kEmbeddings | kRerank | kScore)) != 0) return {};
  if (params->best_of && *params->best_of != params->n) {
    return WrongValue("best_of", fmt::format("is {} but `{}` is {}; they must be equal",
                                             *params->best_of, written("n"), params->n));
  }
  if (params->prompts.size() * static_cast<size_t>(params->n) >
      static_cast<size_t>(limits::kMaxChoices)) {
    return WrongValue(
        written("n"),
        fmt::format("times the number of prompts is {}; at most {} are allowed",
                    params->prompts.size() * static_cast<size_t>(params->n), limits::kMaxChoices));
  }
  VIVACE_RETURN_IF_ERROR(CheckToolChoice(params));
  if (params->continue_final_message && params->add_generation_prompt == true) {
    return WrongValue("add_generation_prompt",
                      "cannot be true together with `continue_final_message`");
  }
  if (params->has_stream_options && !params->stream) {
    return WrongValue("stream_options", "is only allowed when `stream` is true");
  }
  if (params->continuous_usage_stats && !params->include_usage) {
    return WrongValue("stream_options.continuous_usage_stats", "needs `include_usage` as well");
  }
  if (params->endpoint == kChat && params->top_logprobs.value_or(0) > 0 && !params->logprobs) {
    return WrongValue("top_logprobs", "needs `logprobs` to be true");
  }
  if (params->suffix && params->truncate_prompt_tokens) {
    return WrongValue("truncate_prompt_tokens", "would cut the text before the gap of `suffix`");
  }
  if (params->prompt_logprobs && params->stream) {
    return WrongValue("prompt_logprobs", "is not available when `stream` is true");
  }
  const auto wanted = params->wanted_tokens();
  const std::string_view length_name = written(params->length_name());
  if (params->suffix && (params->echo || params->prompts.size() > 1)) {
    return WrongValue("suffix", "goes with one prompt and without `echo`");
  }
  if (wanted == 0 && !params->echo) {
    return WrongValue(length_name, "must be at least 1 (0 is allowed with `echo` only)");
  }
  if (wanted && *wanted >= 0 && params->sampling.min_tokens > *wanted) {
    return WrongValue(
        written("min_tokens"),
        fmt::format("is {} but `{}` is {}", params->sampling.min_tokens, length_name, *wanted));
  }
  if (params->logprobs) params->sampling.logprobs = params->top_logprobs.value_or(0);
  return {};
}

Status ReadParam(const ParamRow& row, std::string_view member, const json::value& value,
                 const ParamContext& context, RequestParams* params) {
  return std::visit(FieldReader{member, value, context, params}, row.field);
}

Result<RequestParams> ParseParams(const json::value& body, const ParamContext& context) {
  const auto* object = body.if_object();
  if (object == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_type", "",
                "the body must be a JSON object, not {}", KindName(body));
  }
  VIVACE_RETURN_IF_ERROR(RefuseBothNames(*object, context.endpoint));
  RequestParams params;
  params.endpoint = context.endpoint;
  for (const auto& [name, value] : *object) {
    VIVACE_RETURN_IF_ERROR(ReadMember(name, value, context, &params));
  }
  VIVACE_RETURN_IF_ERROR(CombineParams(&params));
  // More than there are is all of them, which the sampler calls 0.
  if (params.sampling.top_k >= context.vocab) params.sampling.top_k = 0;
  if (context.endpoint == kResponses) params.echoed = EchoedMembers(*object, params);
  return params;
}

}  // namespace vivace::server
