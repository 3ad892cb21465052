// A chat template, parsed once and rendered many times: jinja2 as Hugging Face sets it up
// (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls, `generation`, its own
// tojson, raise_exception, strftime_now), within the budgets limits::kTemplate*.
// Immutable after Parse; Render may run in many threads at once. Cost: linear in what the template
// does; the request's strings are not copied until they are written out.
#pragma once

#include <boost/json/value.hpp>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/segment.h"

namespace vivace {

// A prompt and where each byte of it came from: the segments tile the text, in order, and no two
// neighbours have the same trust.
struct RenderedPrompt {
  std::string text;
  std::vector<Segment> segments;
};

namespace jinja {

struct Ast;

struct Variable {
  std::string_view name;
  const boost::json::value* value = nullptr;  // lives as long as the call
  bool trusted = false;                       // the model's own, not the request's
};

class Template {
 public:
  // Reasons: syntax, unsupported_statement, unknown_filter, unknown_test, nesting_limit,
  // source_limit, bad_argument.
  static Result<Template> Parse(std::string_view source);

  // Reasons: template_error (raise_exception; the message is the template's own), undefined_value,
  // bad_argument, forbidden_attribute, step_limit, output_limit, memory_limit, depth_limit, …
  Result<RenderedPrompt> Render(std::span<const Variable> variables, const std::tm& now) const;

  const Ast& ast() const { return *ast_; }

 private:
  explicit Template(std::shared_ptr<const Ast> ast) : ast_(std::move(ast)) {}
  std::shared_ptr<const Ast> ast_;
};

}  // namespace jinja
}  // namespace vivace
