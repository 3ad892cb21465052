// The closed set of values a template can hold. There is no way from here to the process: no files,
// no environment, no code; attributes are fields and the fixed method tables of methods.h.
// A Value is a trivially copyable word and a tag; what it points to belongs to the render's Arena.
// `tainted` marks what a request supplied (a string keeps that in its Str, by byte), so that a
// number or a bracket printed later is not taken for template text.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/str.h"

namespace vivace::jinja {

class Runtime;
struct Callable;
struct Dict;
struct LoopState;
struct Namespace;
struct Range;
struct Seq;
struct Undefined;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSeq,
  kRange,
  kDict,
  kNamespace,
  kLoop,
  kCallable
};

struct Value {
  Kind kind = Kind::kUndefined;
  bool tainted = false;
  union {
    bool boolean;
    int64_t integer;
    double real;
    const Str* str;
    Seq* seq;
    Range* range;
    Dict* dict;
    Namespace* space;
    LoopState* loop;
    const Callable* callable;
    const Undefined* undefined = nullptr;  // null: nothing to tell
  };

  static Value None() { return Make(Kind::kNone); }
  static Value Bool(bool b) {
    Value v = Make(Kind::kBool);
    v.boolean = b;
    return v;
  }
  static Value Int(int64_t i) {
    Value v = Make(Kind::kInt);
    v.integer = i;
    return v;
  }
  static Value Float(double d) {
    Value v = Make(Kind::kFloat);
    v.real = d;
    return v;
  }
  static Value Of(const Str* s) {
    Value v = Make(Kind::kString);
    v.str = s;
    return v;
  }
  static Value Of(Seq* s) {
    Value v = Make(Kind::kSeq);
    v.seq = s;
    return v;
  }
  static Value Of(Range* r) {
    Value v = Make(Kind::kRange);
    v.range = r;
    return v;
  }
  static Value Of(Dict* d) {
    Value v = Make(Kind::kDict);
    v.dict = d;
    return v;
  }
  static Value Of(Namespace* n) {
    Value v = Make(Kind::kNamespace);
    v.space = n;
    return v;
  }
  static Value Of(LoopState* l) {
    Value v = Make(Kind::kLoop);
    v.loop = l;
    return v;
  }
  static Value Of(const Callable* c) {
    Value v = Make(Kind::kCallable);
    v.callable = c;
    return v;
  }
  Value Tainted(bool by) const {
    Value v = *this;
    v.tainted = v.tainted || by;
    return v;
  }

  bool is_undefined() const { return kind == Kind::kUndefined; }
  bool is_none() const { return kind == Kind::kNone; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_integral() const { return kind == Kind::kInt || kind == Kind::kBool; }  // as in Python
  bool is_number() const { return is_integral() || kind == Kind::kFloat; }
  int64_t as_integer() const { return kind == Kind::kBool ? boolean : integer; }
  double as_real() const { return kind == Kind::kFloat ? real : static_cast<double>(as_integer()); }

 private:
  static Value Make(Kind kind) {
    Value v;
    v.kind = kind;
    return v;
  }
};

// What a missing value was, for the message of the error its use raises.
struct Undefined {
  std::string_view owner;  // type name of the object asked; empty: a plain variable
  std::string_view name;
  std::string_view hint;   // said instead, when set
  bool forbidden = false;  // the attribute exists in Python and the sandbox hides it
};

enum class SeqKind : uint8_t {
  kList,
  kTuple,
  kGroup,      // a tuple (grouper, list)
  kGenerator,  // may be read once
  kDictKeys,
  kDictValues,
  kDictItems
};

// The error that the next item of a generator raises: filters that make one run at once here, and
// in jinja2 only when somebody reads what they make.
struct PendingError {
  const char* reason;
  std::string_view message;
};

struct Seq {
  Seq(SeqKind seq_kind, std::pmr::memory_resource* memory) : kind(seq_kind), items(memory) {}
  SeqKind kind;
  size_t consumed = 0;                    // of a generator
  const PendingError* failure = nullptr;  // of a generator, after its last item
  std::pmr::vector<Value> items;
  bool is_tuple() const { return kind == SeqKind::kTuple || kind == SeqKind::kGroup; }
};

// Lazy, as in Python: a range of a hundred thousand costs nothing until it is walked.
struct Range {
  int64_t start = 0, stop = 0, step = 1;
  int64_t size() const;
  // Through unsigned words: the product alone may not fit, the sum does.
  Value at(int64_t index) const {
    return Value::Int(static_cast<int64_t>(
        static_cast<uint64_t>(start) + static_cast<uint64_t>(index) * static_cast<uint64_t>(step)));
  }
};

// Insertion ordered. Look-ups scan and are charged for it: dicts of templates are small.
struct Dict {
  explicit Dict(std::pmr::memory_resource* memory) : entries(memory) {}
  std::pmr::vector<std::pair<Value, Value>> entries;
};

// namespace() objects, and cycler() ones, which are a list and a position.
struct Namespace {
  explicit Namespace(std::pmr::memory_resource* memory) : attributes(memory) {}
  Dict attributes;
  Seq* cycle = nullptr;
  size_t position = 0;
};

struct Args {
  std::span<const Value> positional;
  std::span<const std::pair<std::string_view, Value>> named;
};

// Filters, tests, methods and global functions all have this form; `self` is the filtered value,
// the tested value, the receiver, or nothing.
using NativeFn = Value (*)(Runtime& runtime, Value self, const Args& args);

struct Stmt;
struct Scope;

struct Callable {
  std::string_view name;
  NativeFn native = nullptr;  // else a macro:
  Value self;
  const Stmt* macro = nullptr;
  Scope* closure = nullptr;
};

// `loop` inside a for statement.
struct LoopState {
  std::span<const Value> items;
  size_t index0 = 0;
  int64_t depth0 = 0;
  const Stmt* statement = nullptr;  // set when recursive
  Scope* scope = nullptr;
  const Seq* last_changed = nullptr;
};

// Python's name of the type, for messages: "str", "dict", "list"…
std::string_view TypeName(Value value);

}  // namespace vivace::jinja
