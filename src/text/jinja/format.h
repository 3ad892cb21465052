// Values as text, as Python writes them: str(), repr(), the % operator and str.format.
#pragma once

#include <string>

#include "text/jinja/runtime.h"

namespace vivace::jinja {

// str(value); flat or pending for strings. A request's value stays untrusted.
const Str* ToStr(Runtime& runtime, Value value);
const Str* ToFlatStr(Runtime& runtime, Value value);
void AppendRepr(Runtime& runtime, StrBuilder& out, Value value);

// The shortest digits that read back as `number`, in Python's notation: "1.0", "1e-05", "inf".
std::string FloatRepr(double number);

// format % arguments
Value FormatPercent(Runtime& runtime, const Str* format, Value arguments);
// format.format(*args, **kwargs)
Value FormatBraces(Runtime& runtime, const Str* format, const Args& args);

}  // namespace vivace::jinja
