#include "server/openai/chat_prompt.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/limits.h"
#include "server/openai/described_tools.h"
#include "server/openai/messages.h"
#include "text/render_input.h"

namespace vivace::server {
namespace {

// What a template reads that says only whether to think.
constexpr std::string_view kThinkSwitches[] = {"enable_thinking", "thinking"};

void AddThinking(const RequestParams& params, const ChatTemplate& chat_template,
                 json::object* extra) {
  std::optional<bool> think = params.thinking;
  if (params.reasoning_effort != nullptr) {
    (*extra)["reasoning_effort"] = *params.reasoning_effort;
    if (!think) think = params.reasoning_effort->as_string() != "none";
  }
  if (!think) return;
  for (const std::string_view name : kThinkSwitches) {
    if (chat_template.Reads(name)) (*extra)[name] = *think;
  }
}

// OpenAI's newer name for a system message is that to most templates, or nothing at all.
void NameDevelopers(const ChatTemplate& chat_template, json::array* messages) {
  if (chat_template.accepts_developer_role()) return;
  for (json::value& message : *messages) {
    json::value& role = message.at("role");
    if (role == "developer") role = "system";
  }
}

// Tools, calls and results as this model's template takes them.
void AddTools(const RequestParams& params, const ServedModel& model, ChatRenderInput* input) {
  const json::array* tools = params.tool_choice == ToolChoice::kNone ? nullptr : params.tools;
  if (model.dialect.describes_tools) {
    input->messages = WithDescribedTools(std::move(input->messages), tools,
                                         model.chat_template->accepts_system_role());
  } else if (tools != nullptr) {
    input->tools = *tools;
  }
}

// A member of messages that few templates read, under the names clients have for it.
struct RareMember {
  std::span<const std::string_view> spellings;
  // The template may read it in some messages only, by where they stand: one that knows its name
  // has a use for it. Else that says nothing: tools are named too.
  bool known_by_name = false;
};
constexpr std::string_view kName[] = {"name"};
constexpr std::string_view kReasoning[] = {"reasoning_content", "reasoning"};
constexpr std::string_view kThinking[] = {"thinking"};
constexpr RareMember kRareMembers[] = {{kName}, {kReasoning, true}, {kThinking, true}};

bool Says(const json::value& message, const RareMember& member) {
  return std::ranges::any_of(member.spellings, [&](std::string_view name) {
    const json::value* value = message.get_object().if_contains(name);
    return value != nullptr && !value->get_string().empty();
  });
}

// `input` is what rendered as `text`.
std::vector<std::string_view> UnreadMembers(const ChatTemplate& chat_template,
                                            ChatRenderInput input, std::string_view text) {
  std::vector<std::string_view> unread;
  std::string before;
  for (const RareMember& member : kRareMembers) {
    const auto says = [&](const json::value& message) { return Says(message, member); };
    const auto known = [&](std::string_view name) { return chat_template.ReadsMember(name); };
    if (std::ranges::none_of(input.messages, says)) continue;
    if (member.known_by_name && std::ranges::any_of(member.spellings, known)) continue;
    for (json::value& message : input.messages) {
      for (const std::string_view name : member.spellings) message.get_object().stable_erase(name);
    }
    auto without = chat_template.Render(input);
    if (!without) break;  // it insists on the member, so it reads it
    if (without->text == text) {
      unread.insert(unread.end(), member.spellings.begin(), member.spellings.end());
    }
    before = std::move(without->text);
    text = before;
  }
  return unread;
}

}  // namespace

bool KnowsThinking(const ChatTemplate& chat_template) {
  return std::any_of(std::begin(kThinkSwitches), std::end(kThinkSwitches),
                     [&](std::string_view name) { return chat_template.Reads(name); });
}

bool KnowsReasoningEffort(const ChatTemplate& chat_template) {
  return chat_template.Reads("reasoning_effort") || KnowsThinking(chat_template);
}

Status CheckTextFits(std::string_view text, std::string_view field, const ServedModel& model) {
  const size_t least = text.size() / model.longest_token_bytes;
  if (least <= static_cast<size_t>(model.max_model_len)) return {};
  return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", std::string(field),
              "the prompt has at least {} tokens; this model's context is {} tokens", least,
              model.max_model_len);
}

Result<RenderedChat> RenderChat(const RequestParams& params, const ServedModel& model) {
  const std::string field = params.endpoint == kResponses ? "input" : "messages";
  if (model.chat_template == nullptr) {
    return Fail(ErrorCode::kUnsupported, "no_chat_template", field,
                "this model has no chat template; use /v1/completions");
  }
  ChatRenderInput input = RenderInputFor(*model.tokenizer);
  VIVACE_ASSIGN(input.messages, NormalizeMessages(*params.messages));
  NameDevelopers(*model.chat_template, &input.messages);
  AddTools(params, model, &input);
  if (params.documents != nullptr) {
    if (!model.chat_template->Reads("documents")) {
      return Fail(ErrorCode::kUnsupported, "unsupported_parameter", "documents",
                  "this model's chat template reads no `documents`; put them into a message");
    }
    input.documents = *params.documents;
  }
  AddThinking(params, *model.chat_template, &input.extra);
  if (params.chat_template_kwargs != nullptr) {
    for (const auto& [name, value] : *params.chat_template_kwargs) input.extra[name] = value;
  }
  input.add_generation_prompt =
      params.add_generation_prompt.value_or(!params.continue_final_message);
  input.continue_final_message = params.continue_final_message;
  auto rendered = model.chat_template->Render(input);
  if (!rendered) {
    if (rendered.error().field.empty()) rendered.error().field = field;
    return tl::unexpected<Error>(std::move(rendered.error()));
  }
  const ReasoningStart reasoning =
      FindReasoningStart(model.dialect, *rendered, params.continue_final_message);
  const bool generates = params.endpoint != kTokenize && params.endpoint != kCountTokens;
  if (generates && !params.truncate_prompt_tokens) {
    VIVACE_RETURN_IF_ERROR(CheckTextFits(rendered->text, field, model));
  } else if (rendered->text.size() > limits::kMaxTokenizeBytes) {
    return Fail(ErrorCode::kInvalidArgument, "too_long", field,
                "the messages make {} bytes of text; at most {} are tokenized at once",
                rendered->text.size(), limits::kMaxTokenizeBytes);
  }
  std::vector<TokenId> ids = model.tokenizer->EncodeSegments(rendered->text, rendered->segments);
  std::vector<std::string_view> unread =
      UnreadMembers(*model.chat_template, std::move(input), rendered->text);
  // Templates write BOS themselves; a caller may ask for one where the template does not.
  const auto bos = model.tokenizer->bos();
  if (params.add_special_tokens == true && model.tokenizer->add_bos() && bos &&
      (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return RenderedChat{std::move(rendered->text), std::move(ids), reasoning, std::move(unread)};
}

}  // namespace vivace::server
