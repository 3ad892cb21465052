// How the template engine stops: one private exception, thrown anywhere below Template::Parse and
// Template::Render and turned into a Result there. It never leaves this folder. An exception and
// not a Result, because every operator of the language can fail and all of them fail the same way.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace vivace::jinja {

struct TemplateError {
  const char* reason;   // the slug of vivace::Error
  std::string message;  // without the line; the boundary adds it
};

template <typename... Args>
[[noreturn]] void Raise(const char* reason, fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateError{reason, fmt::format(format, std::forward<Args>(args)...)};
}

// Slugs, in one place so that a caller can match them.
inline constexpr char kSyntax[] = "syntax";
inline constexpr char kUnsupportedStatement[] = "unsupported_statement";
inline constexpr char kNestingLimit[] = "nesting_limit";
inline constexpr char kDepthLimit[] = "depth_limit";
inline constexpr char kStepLimit[] = "step_limit";
inline constexpr char kOutputLimit[] = "output_limit";
inline constexpr char kMemoryLimit[] = "memory_limit";
inline constexpr char kSourceLimit[] = "source_limit";
inline constexpr char kBadArgument[] = "bad_argument";
inline constexpr char kUndefinedValue[] = "undefined_value";
inline constexpr char kForbiddenAttribute[] = "forbidden_attribute";
inline constexpr char kRaisedByTemplate[] = "template_error";

}  // namespace vivace::jinja
