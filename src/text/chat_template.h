// The chat template of a model: from the messages of a request to the text of its prompt.
//
// A ChatTemplate is parsed once, is immutable and may render in many threads at once. What a
// request supplies (messages, tools, documents, template arguments) is never trusted: the result's
// segments tell its bytes from the template's own, so that message text cannot become a control
// token. Cost: one walk of the template; strings are copied once, into the result. Needs 512 KiB of
// stack.
#pragma once

#include <boost/json.hpp>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/template.h"

namespace vivace {

struct ChatRenderInput {
  boost::json::array messages;       // objects with "role"; checked by the caller
  boost::json::value tools;          // array, or null for none
  boost::json::value documents;      // array, or null for none
  boost::json::object extra;         // chat_template_kwargs; reserved names are refused
  std::string bos_token, eos_token;  // the model's own: trusted
  bool add_generation_prompt = true;
  // The last message is not closed but continued: the text ends with it. Excludes
  // add_generation_prompt.
  bool continue_final_message = false;
  std::tm now = {};  // local time, for strftime_now
};

class ChatTemplate {
 public:
  // Errors (kCorruptData, or kUnsupported for include and the like) tell the line.
  static Result<ChatTemplate> Parse(std::string source);

  // Errors are the request's (kInvalidArgument) and name the slug: template_error carries the
  // template's own sentence (raise_exception), step_limit, output_limit and so on its budgets.
  //
  // Content given as a list of parts goes to the template as it is when the template walks over
  // parts. For other templates, text parts are joined by one newline (as vLLM does), an empty list
  // is the empty string, and parts that are not text are refused (unsupported_content).
  // A null content is None to the template, as in Hugging Face.
  Result<RenderedPrompt> Render(const ChatRenderInput& input) const;

  // The template reads the variable `name` somewhere. Cost: a walk of the template.
  bool Reads(std::string_view name) const;
  // The template asks some object for the member `name`: of a message, or a tool, or what else it
  // reads. Cost: as above.
  bool ReadsMember(std::string_view name) const;
  // The template reads `tools`.
  bool uses_tools() const { return uses_tools_; }
  // The template takes content as a string only.
  bool string_content_only() const { return string_content_only_; }
  // A system message is let through and its text reaches the prompt. Found by rendering one at
  // Parse.
  bool accepts_system_role() const { return accepts_system_role_; }
  // The same of a developer's.
  bool accepts_developer_role() const { return accepts_developer_role_; }
  // What was parsed: where a model's dialect is found (text/dialect).
  const std::string& source() const { return source_; }

 private:
  ChatTemplate(jinja::Template parsed, std::string source);
  bool ProbeRole(std::string_view role) const;

  jinja::Template template_;
  std::string source_;
  bool uses_tools_ = false;
  bool string_content_only_ = true;
  bool accepts_system_role_ = true;
  bool accepts_developer_role_ = true;
};

}  // namespace vivace
