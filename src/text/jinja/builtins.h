// The names a template can use without being given them: filters, tests and global functions.
// Tables built once, read-only; a look-up is one hash.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace vivace::jinja {

NativeFn FindFilter(std::string_view name);  // null: none
NativeFn FindTest(std::string_view name);    // a test answers Value::Bool
NativeFn FindGlobal(std::string_view name);

struct Builtin {
  std::string_view name;
  NativeFn function;
};
std::span<const Builtin> TextFilters();
std::span<const Builtin> SequenceFilters();
std::span<const Builtin> NumberFilters();
std::span<const Builtin> Tests();
std::span<const Builtin> Globals();

}  // namespace vivace::jinja
