#include "server/openai/output_constraints.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/openai/output_rules.h"
#include "server/params/readers.h"
#include "server/params/table.h"

namespace vivace::server {
namespace {

// Chat's parameter has no effect, by the name that the client wrote.
Status Report(std::string_view name, RequestParams* params) {
  return ReportIgnored(ClientName(params->endpoint, name), params);
}

Status AddBudget(const OutputReading& reading, const ServedModel& model, RequestParams* params,
                 OutputConstraints* out) {
  if (!params->thinking_token_budget) return {};
  const Dialect& dialect = model.dialect;
  const bool open = reading.reasoning == ReasoningStart::kOpen;
  const bool closed = reading.reasoning == ReasoningStart::kNone;
  const bool known =
      dialect.reasoning_end_token >= 0 && (open || dialect.reasoning_begin_token >= 0);
  if (dialect.reasoning == nullptr || (!known && !closed)) {
    return Report("thinking_token_budget", params);
  }
  if (closed) return {};
  out->thinking_budget = params->thinking_token_budget;
  out->marks = {dialect.reasoning_begin_token, dialect.reasoning_end_token, open};
  return {};
}

std::string_view AskedBy(const RequestParams& params) {
  if (params.grammar) return params.grammar->field;
  return params.forces_calls() ? "tool_choice" : "tools";
}

// What the content must be, in the terms of a structural tag.
Result<json::value> ContentFormat(const GrammarSpec& spec) {
  switch (spec.kind) {
    case GrammarSpec::Kind::kJsonObject:
      return json::value{{"type", "json_schema"}, {"json_schema", {{"type", "object"}}}};
    case GrammarSpec::Kind::kJsonSchema: {
      VIVACE_ASSIGN(json::value schema, ParseStrictJson(spec.text));
      return json::value{{"type", "json_schema"}, {"json_schema", std::move(schema)}};
    }
    case GrammarSpec::Kind::kRegex:
      return json::value{{"type", "regex"}, {"pattern", spec.text}};
    case GrammarSpec::Kind::kEbnf:
      return json::value{{"type", "grammar"}, {"grammar", spec.text}};
    case GrammarSpec::Kind::kChoice: {
      json::array choices;
      for (const std::string& choice : spec.choices) {
        choices.push_back({{"type", "const_string"}, {"value", choice}});
      }
      return json::value{{"type", "or"}, {"elements", std::move(choices)}};
    }
    case GrammarSpec::Kind::kStructural: {
      VIVACE_ASSIGN(json::value tag, ParseStrictJson(spec.text));
      if (const auto* object = tag.if_object(); object != nullptr && object->contains("format")) {
        return object->at("format");
      }
    }
  }
  return Fail(ErrorCode::kInvalidArgument, "bad_structural_tag", spec.field,
              "beside tools or thoughts a structural tag needs a format");
}

// The output is content throughout: no tools, and no thought before it.
bool OnlyContent(const OutputReading& reading) {
  return reading.tools == nullptr && reading.reasoning == ReasoningStart::kNone &&
         (reading.dialect == nullptr ||
          reading.dialect->tools->shape != dialect::CallShape::kHarmony);
}

// What is wrong with a grammar, in a sentence that stands alone: clients show nothing else.
tl::unexpected<Error> Named(Error error) {
  constexpr std::string_view kIt = "it ";
  const bool it = error.message.starts_with(kIt);
  error.message = fmt::format("`{}`{} {}", error.field, it ? "" : ":",
                              std::string_view(error.message).substr(it ? kIt.size() : 0));
  return tl::unexpected<Error>(std::move(error));
}

Status CompileContent(const GrammarSpec& spec, const ServedModel& model,
                      const RequestParams& params, OutputConstraints* out) {
  if (model.grammar == nullptr) {
    return Fail(ErrorCode::kUnsupported, "unsupported_parameter", spec.field,
                "`{}` needs constrained outputs, which this server does not offer", spec.field);
  }
  auto compiled = model.grammar->Compile(spec);
  if (!compiled) return Named(std::move(compiled.error()));
  out->grammar = std::move(*compiled);
  out->options.jump_forward = !params.logprobs;
  return {};
}

Result<std::shared_ptr<const CompiledGrammar>> Compile(const OutputGrammar& grammar,
                                                       const ServedModel& model,
                                                       const RequestParams& params) {
  return model.grammar->Compile({.kind = GrammarSpec::Kind::kStructural,
                                 .text = grammar.structural_tag,
                                 .choices = {},
                                 .field = params.grammar ? params.grammar->field : "tools"});
}

// Where a schema among several cannot be enforced, says which.
Status CheckSchemas(const OutputReading& reading, const RequestParams& params) {
  const std::vector<dialect::Tool>& tools = reading.tools->tools;
  for (size_t i = 0; i < tools.size(); ++i) {
    if (params.tool_choice == ToolChoice::kNamed && tools[i].name != params.tool_name) continue;
    OutputRules rules;
    rules.dialect = reading.dialect;
    rules.tools = reading.tools.get();
    rules.calls = OutputRules::Calls::kRequired;
    rules.only = tools[i].name;
    Status checked = CheckGrammar({.kind = GrammarSpec::Kind::kStructural,
                                   .text = MakeOutputGrammar(rules).structural_tag,
                                   .choices = {},
                                   .field = ToolSchemaName(params, i)});
    if (!checked) return Named(std::move(checked.error()));
  }
  return {};
}

Status AddGrammar(const OutputReading& reading, const ServedModel& model, RequestParams* params,
                  OutputConstraints* out) {
  json::value content;
  if (params->grammar && reading.tools != nullptr && params->forces_calls()) {
    // The output is calls: there is no content to be held.
    VIVACE_RETURN_IF_ERROR(ReportIgnored(params->grammar->field, params));
    params->grammar.reset();
  }
  if (params->grammar) {
    if (OnlyContent(reading)) return CompileContent(*params->grammar, model, *params, out);
    VIVACE_ASSIGN(content, ContentFormat(*params->grammar));
  }
  const json::value* wanted = params->grammar ? &content : nullptr;
  const bool obey = MustObeySchemas(*params, reading.tools.get());
  auto grammar = GrammarOf(*params, reading, model, wanted, /*schemas=*/true);
  if (!grammar) return {};
  if (model.grammar == nullptr) {
    if (!params->grammar && !obey) return {};
    return Fail(ErrorCode::kUnsupported, "unsupported_parameter", std::string(AskedBy(*params)),
                "`{}` needs constrained outputs, which this server does not offer",
                AskedBy(*params));
  }
  auto compiled = Compile(*grammar, model, *params);
  const bool refused = !compiled && compiled.error().reason != kGrammarNotReady;
  if (refused && !obey && reading.tools != nullptr) {
    // Nobody asked for obedient arguments, schemas are help: without them the request is served.
    VIVACE_RETURN_IF_ERROR(Report("tools.parameters", params));
    if (!params->grammar) return {};
    grammar = GrammarOf(*params, reading, model, wanted, /*schemas=*/false);
    compiled = Compile(*grammar, model, *params);
  }
  if (!compiled) {
    if (refused && obey) VIVACE_RETURN_IF_ERROR(CheckSchemas(reading, *params));
    return Named(std::move(compiled.error()));
  }
  out->grammar = std::move(*compiled);
  out->options.begin_after = grammar->begin_after;
  out->options.jump_forward = !params->logprobs;
  return {};
}

// What an output must be leaves nothing else at times, and then these give way: nothing can be
// promised of them.
Status ReportWhatGivesWay(RequestParams* params) {
  const SamplingParams& sampling = params->sampling;
  const bool bans = std::ranges::any_of(sampling.logit_bias,
                                        [](const auto& entry) { return entry.second <= -100; });
  const std::pair<std::string_view, bool> members[] = {
      {"min_tokens", sampling.min_tokens > 0},
      {"allowed_token_ids", !sampling.allowed_token_ids.empty()},
      {"bad_words", !params->bad_words.empty()},
      {"ignore_eos", sampling.ignore_eos},
      {"logit_bias", bans}};
  for (const auto& [name, given] : members) {
    if (!given) continue;
    if (params->strict) {
      return Fail(ErrorCode::kUnsupported, "strict_gives_way", std::string(name),
                  "`{}` gives way where `{}` leaves nothing else, and the request is strict: leave "
                  "one of them out",
                  name, AskedBy(*params));
    }
    params->ignored.emplace_back(name);
  }
  return {};
}

}  // namespace

std::vector<std::unique_ptr<TokenConstraint>> OutputConstraints::New(int32_t choices) const {
  std::vector<std::unique_ptr<TokenConstraint>> constraints;
  for (int32_t i = 0; any() && i < choices; ++i) {
    std::unique_ptr<TokenConstraint> constraint;
    if (grammar != nullptr) constraint = grammar->NewConstraint(options);
    if (thinking_budget) {
      constraint =
          std::make_unique<ReasoningBudget>(*thinking_budget, marks, std::move(constraint));
    }
    constraints.push_back(std::move(constraint));
  }
  return constraints;
}

Result<OutputConstraints> ConstrainOutputs(const OutputReading& reading, const ServedModel& model,
                                           RequestParams* params) {
  OutputConstraints out;
  VIVACE_RETURN_IF_ERROR(AddBudget(reading, model, params, &out));
  VIVACE_RETURN_IF_ERROR(AddGrammar(reading, model, params, &out));
  const auto choices = static_cast<size_t>(params->n);
  if (out.grammar != nullptr &&
      out.grammar->output_bytes() > limits::kMaxConstraintBytes / choices) {
    return Fail(ErrorCode::kInvalidArgument, "grammar_too_complex", "n",
                "{} outputs may take {} MiB to be held to what `{}` asks for, of {} that there are "
                "for a request: lower `n`, or ask for something simpler",
                choices, choices * out.grammar->output_bytes() >> 20, AskedBy(*params),
                limits::kMaxConstraintBytes >> 20);
  }
  if (out.grammar != nullptr && (params->grammar || params->forces_calls())) {
    VIVACE_RETURN_IF_ERROR(ReportWhatGivesWay(params));
  }
  return out;
}

}  // namespace vivace::server
