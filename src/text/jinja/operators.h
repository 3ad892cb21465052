// Python's operators over template values: truth, equality, order, arithmetic, membership,
// indexing and iteration. Integers are 64-bit and checked: a result that does not fit is an error.
// Every function charges the step budget for what it walks. Throws TemplateError.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace vivace::jinja {

bool IsTrue(Value value);
bool Equal(Runtime& runtime, Value left, Value right);
bool SameObject(Value left, Value right);
// Negative, zero or positive; raises for types that have no order. NaN compares as unordered:
// kUnordered.
inline constexpr int kUnordered = 2;
int Compare(Runtime& runtime, Value left, Value right);
bool Test(Runtime& runtime, Op comparison, Value left, Value right);
bool Contains(Runtime& runtime, Value container, Value item);
Value Arithmetic(Runtime& runtime, Op op, Value left, Value right);
Value Negate(Runtime& runtime, Value value);
Value Plus(Value value);
bool IsHashable(Value value);

// len(): raises for what has none.
int64_t Length(Runtime& runtime, Value value);
bool HasLength(Value value);

// Python slicing of strings, lists, tuples and ranges; null bounds are None.
Value SliceOf(Runtime& runtime, Value value, Value start, Value stop, Value step);

// object[key] and object.name with jinja2's fall-backs from the one to the other.
Value GetItem(Runtime& runtime, Value object, Value key);
Value GetAttribute(Runtime& runtime, Value object, std::string_view name);
const Value* FindKey(Runtime& runtime, const Dict& dict, Value key);
const Value* FindKey(Runtime& runtime, const Dict& dict, std::string_view key);
void SetKey(Runtime& runtime, Dict& dict, Value key, Value value);

// The items of any iterable. A view when it is a list already (then valid while that list is), else
// copied into the arena; a generator is used up.
bool IsIterable(Value value);
// Throws the error that a generator ends with, if it does.
void RaisePending(Seq& generator);
std::span<const Value> Items(Runtime& runtime, Value value);

}  // namespace vivace::jinja
