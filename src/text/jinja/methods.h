// Attributes of values: the methods of str, dict, list and tuple a template may call, and the
// fields of loop, namespace, cycler and macro objects. Methods that would change their object exist
// but are forbidden, as in jinja2's immutable sandbox; so are the __names__ of Python's objects.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace vivace::jinja {

// The bound method or the field; an undefined value that says "forbidden"; or Value{} (undefined
// without information) when the type has no such attribute.
Value FindMethodOrField(Runtime& runtime, Value object, std::string_view name);

// Names with two underscores that Python's objects have: never to be had here.
bool IsObjectAttribute(std::string_view name);

NativeFn FindStringMethod(std::string_view name);  // null: none

}  // namespace vivace::jinja
