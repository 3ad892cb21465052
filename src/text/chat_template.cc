#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "text/jinja/analysis.h"
#include "text/jinja/unicode.h"

namespace vivace {
namespace {

namespace json = boost::json;

constexpr std::string_view kReserved[] = {
    "messages",  "tools",          "documents",     "add_generation_prompt",
    "bos_token", "eos_token",      "chat_template", "continue_final_message",
    "tokenize",  "return_tensors", "return_dict",   "conversation"};

Status CheckExtra(const json::object& extra) {
  if (extra.size() > limits::kTemplateKwargs) {
    return Fail(ErrorCode::kInvalidArgument, "too_many_arguments", "chat_template_kwargs",
                "chat_template_kwargs has {} members, more than {}", extra.size(),
                limits::kTemplateKwargs);
  }
  for (const auto& member : extra) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
      return Fail(ErrorCode::kInvalidArgument, "reserved_argument", "chat_template_kwargs",
                  "chat_template_kwargs may not set {}", name);
    }
  }
  return {};
}

// The texts of a list of parts, joined by newlines.
Result<json::string> JoinTextParts(const json::array& parts) {
  json::string joined;
  bool first = true;
  for (const json::value& part : parts) {
    const json::object* object = part.if_object();
    const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
    const json::value* text = object == nullptr ? nullptr : object->if_contains("text");
    const bool is_text = text != nullptr && text->is_string() &&
                         (type == nullptr || (type->is_string() && type->get_string() == "text"));
    if (!is_text) {
      return Fail(ErrorCode::kInvalidArgument, "unsupported_content", "messages",
                  "this model's chat template takes text content only");
    }
    if (!std::exchange(first, false)) joined.push_back('\n');
    joined.append(text->get_string());
  }
  return joined;
}

Result<json::array> WithStringContent(const json::array& messages) {
  json::array out = messages;
  for (json::value& message : out) {
    json::object* object = message.if_object();
    json::value* content = object == nullptr ? nullptr : object->if_contains("content");
    if (content == nullptr || !content->is_array()) continue;
    VIVACE_ASSIGN(json::string joined, JoinTextParts(content->get_array()));
    *content = std::move(joined);
  }
  return out;
}

bool HasParts(const json::array& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const json::value& message) {
    const json::object* object = message.if_object();
    const json::value* content = object == nullptr ? nullptr : object->if_contains("content");
    return content != nullptr && content->is_array();
  });
}

// The text of the last message: its content, or the last text part of it.
std::string_view FinalText(const json::array& messages) {
  const json::object* last = messages.empty() ? nullptr : messages.back().if_object();
  const json::value* content = last == nullptr ? nullptr : last->if_contains("content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get_string();
  if (!content->is_array()) return {};
  for (size_t i = content->get_array().size(); i-- > 0;) {
    const json::object* part = content->get_array()[i].if_object();
    const json::value* text = part == nullptr ? nullptr : part->if_contains("text");
    if (text != nullptr && text->is_string()) return text->get_string();
  }
  return {};
}

// Cuts the prompt right after the last occurrence of the final message, as Hugging Face does: with
// the message's own trailing blanks when the template kept them.
Status CutAfterFinalMessage(std::string_view final_text, RenderedPrompt& prompt) {
  const size_t lead = jinja::StripLeftOffset(final_text);
  const std::string_view kept = final_text.substr(lead);
  const std::string_view bare = kept.substr(0, jinja::StripRightOffset(kept));
  const std::string_view text = prompt.text;
  const size_t at = bare.empty() ? std::string_view::npos : text.rfind(bare);
  if (at == std::string_view::npos) {
    return Fail(ErrorCode::kInvalidArgument, "final_message_lost", "continue_final_message",
                "the last message's text is not in the prompt, so it can't be continued");
  }
  const bool whole = text.substr(at, kept.size()) == kept;
  const size_t end = at + (whole ? kept.size() : bare.size());
  prompt.text.resize(end);
  while (!prompt.segments.empty() && prompt.segments.back().begin >= end) {
    prompt.segments.pop_back();
  }
  if (!prompt.segments.empty()) prompt.segments.back().end = end;
  return {};
}

}  // namespace

ChatTemplate::ChatTemplate(jinja::Template parsed, std::string source)
    : template_(std::move(parsed)),
      source_(std::move(source)),
      uses_tools_(Reads("tools")),
      string_content_only_(!jinja::IteratesContent(template_.ast())) {
  accepts_system_role_ = ProbeRole("system");
  accepts_developer_role_ = ProbeRole("developer");
}

Result<ChatTemplate> ChatTemplate::Parse(std::string source) {
  VIVACE_ASSIGN(jinja::Template parsed, jinja::Template::Parse(source));
  return ChatTemplate(std::move(parsed), std::move(source));
}

bool ChatTemplate::Reads(std::string_view name) const {
  return jinja::ReadsVariable(template_.ast(), name);
}

bool ChatTemplate::ReadsMember(std::string_view name) const {
  return jinja::ReadsMember(template_.ast(), name);
}

bool ChatTemplate::ProbeRole(std::string_view role) const {
  constexpr std::string_view kProbe = "vivace probe";
  ChatRenderInput input;
  input.messages = {{{"role", role}, {"content", kProbe}},
                    {{"role", "user"}, {"content", "hello"}}};
  const auto prompt = Render(input);
  return prompt && prompt->text.find(kProbe) != std::string::npos;
}

Result<RenderedPrompt> ChatTemplate::Render(const ChatRenderInput& input) const {
  VIVACE_RETURN_IF_ERROR(CheckExtra(input.extra));
  if (input.continue_final_message && input.add_generation_prompt) {
    return Fail(ErrorCode::kInvalidArgument, "conflicting_arguments", "continue_final_message",
                "continue_final_message and add_generation_prompt exclude each other");
  }
  json::value messages;
  if (string_content_only_ && HasParts(input.messages)) {
    VIVACE_ASSIGN(messages, WithStringContent(input.messages));
  }
  const json::value wrapped =
      messages.is_null() ? json::value(input.messages) : std::move(messages);
  const json::value bos = json::string(input.bos_token), eos = json::string(input.eos_token);
  const json::value add_prompt = input.add_generation_prompt;
  std::vector<jinja::Variable> variables;
  for (const auto& member : input.extra) {
    variables.push_back({{member.key().data(), member.key().size()}, &member.value(), false});
  }
  variables.push_back({"messages", &wrapped, false});
  variables.push_back({"tools", &input.tools, false});
  variables.push_back({"documents", &input.documents, false});
  variables.push_back({"add_generation_prompt", &add_prompt, true});
  variables.push_back({"bos_token", &bos, true});
  variables.push_back({"eos_token", &eos, true});
  VIVACE_ASSIGN(RenderedPrompt prompt, template_.Render(variables, input.now));
  if (input.continue_final_message) {
    VIVACE_RETURN_IF_ERROR(CutAfterFinalMessage(FinalText(wrapped.get_array()), prompt));
  }
  return prompt;
}

}  // namespace vivace
