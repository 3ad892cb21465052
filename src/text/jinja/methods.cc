#include "text/jinja/methods.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/ast.h"
#include "text/jinja/operators.h"

namespace vivace::jinja {
namespace {

struct Method {
  std::string_view name;
  NativeFn function;
};

Value DictGet(Runtime& runtime, Value self, const Args& args) {
  const Params params("get", args, {"key", "default"}, 1);
  if (!IsHashable(params.Get(0))) Raise(kBadArgument, "{} can't be a key", TypeName(params.Get(0)));
  const Value* found = FindKey(runtime, *self.dict, params.Get(0));
  return found != nullptr ? *found : params.Get(1);
}

Value DictItems(Runtime& runtime, Value self, const Args& args) {
  Params("items", args, {});
  Seq* items = runtime.NewSeq(SeqKind::kDictItems);
  runtime.ChargeItems(self.dict->entries.size());
  for (const auto& [key, value] : self.dict->entries) {
    items->items.push_back(runtime.List({key, value}, SeqKind::kTuple).Tainted(self.tainted));
  }
  return Value::Of(items).Tainted(self.tainted);
}

template <bool kKeys>
Value DictView(Runtime& runtime, Value self, const Args& args) {
  Params("this method", args, {});
  Seq* items = runtime.NewSeq(kKeys ? SeqKind::kDictKeys : SeqKind::kDictValues);
  runtime.ChargeItems(self.dict->entries.size());
  for (const auto& [key, value] : self.dict->entries) items->items.push_back(kKeys ? key : value);
  return Value::Of(items).Tainted(self.tainted);
}

Value DictCopy(Runtime& runtime, Value self, const Args& args) {
  Params("copy", args, {});
  Dict* copy = runtime.arena.New<Dict>(&runtime.arena);
  runtime.ChargeItems(self.dict->entries.size());
  copy->entries = self.dict->entries;
  return Value::Of(copy).Tainted(self.tainted);
}

Value SeqIndex(Runtime& runtime, Value self, const Args& args) {
  const Params params("index", args, {"value"}, 1);
  const auto& items = self.seq->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(runtime, items[i], params.Get(0))) return Value::Int(static_cast<int64_t>(i));
  }
  Raise(kBadArgument, "the value is not in the list");
}

Value SeqCount(Runtime& runtime, Value self, const Args& args) {
  const Params params("count", args, {"value"}, 1);
  int64_t count = 0;
  for (const Value& item : self.seq->items) count += Equal(runtime, item, params.Get(0));
  return Value::Int(count);
}

Value SeqCopy(Runtime& runtime, Value self, const Args& args) {
  Params("copy", args, {});
  Seq* copy = runtime.NewSeq(SeqKind::kList);
  runtime.ChargeItems(self.seq->items.size());
  copy->items = self.seq->items;
  return Value::Of(copy).Tainted(self.tainted);
}

Value LoopCycle(Runtime&, Value self, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) Raise(kBadArgument, "no items for cycling");
  return args.positional[self.loop->index0 % args.positional.size()];
}

Value LoopChanged(Runtime& runtime, Value self, const Args& args) {
  if (!args.named.empty()) Raise(kBadArgument, "changed has no named arguments");
  Seq* now = runtime.NewSeq(SeqKind::kTuple);
  now->items.assign(args.positional.begin(), args.positional.end());
  const Seq* before = std::exchange(self.loop->last_changed, now);
  if (before == nullptr) return Value::Bool(true);
  return Value::Bool(!Equal(runtime, Value::Of(const_cast<Seq*>(before)), Value::Of(now)));
}

Value CyclerNext(Runtime&, Value self, const Args& args) {
  Params("next", args, {});
  Namespace& cycler = *self.space;
  const Value current = cycler.cycle->items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.cycle->items.size();
  return current;
}

Value CyclerReset(Runtime&, Value self, const Args& args) {
  Params("reset", args, {});
  self.space->position = 0;
  return Value::None();
}

constexpr Method kDictMethods[] = {{"get", DictGet},
                                   {"items", DictItems},
                                   {"keys", DictView<true>},
                                   {"values", DictView<false>},
                                   {"copy", DictCopy}};
constexpr Method kSeqMethods[] = {{"index", SeqIndex}, {"count", SeqCount}};
constexpr Method kListMethods[] = {{"copy", SeqCopy}};
constexpr Method kLoopMethods[] = {{"cycle", LoopCycle}, {"changed", LoopChanged}};
constexpr Method kCyclerMethods[] = {{"next", CyclerNext}, {"reset", CyclerReset}};

constexpr std::string_view kMutatingDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kMutatingList[] = {"append", "clear", "pop",    "reverse",
                                              "insert", "sort",  "extend", "remove"};

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value Bind(Runtime& runtime, Value self, std::string_view name, NativeFn function) {
  Callable* method = runtime.arena.New<Callable>();
  method->name = name;
  method->native = function;
  method->self = self;
  return Value::Of(method);
}

Value FindIn(Runtime& runtime, Value self, std::span<const Method> methods, std::string_view name) {
  for (const Method& method : methods) {
    if (method.name == name) return Bind(runtime, self, method.name, method.function);
  }
  return {};
}

Value LoopField(Runtime& runtime, Value object, std::string_view name) {
  const LoopState& loop = *object.loop;
  const auto index = static_cast<int64_t>(loop.index0),
             size = static_cast<int64_t>(loop.items.size());
  if (name == "index0") return Value::Int(index);
  if (name == "index") return Value::Int(index + 1);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 >= size);
  if (name == "length") return Value::Int(size);
  if (name == "revindex0") return Value::Int(size - index - 1);
  if (name == "revindex") return Value::Int(size - index);
  if (name == "depth0") return Value::Int(loop.depth0);
  if (name == "depth") return Value::Int(loop.depth0 + 1);
  if (name == "previtem") {
    return index == 0 ? runtime.Missing("there is no previous item") : loop.items[loop.index0 - 1];
  }
  if (name == "nextitem") {
    return index + 1 >= size ? runtime.Missing("there is no next item")
                             : loop.items[loop.index0 + 1];
  }
  return FindIn(runtime, object, kLoopMethods, name);
}

Value SeqField(Runtime& runtime, Value object, std::string_view name) {
  const Seq& seq = *object.seq;
  if (seq.kind == SeqKind::kGroup && name == "grouper") return seq.items[0];
  if (seq.kind == SeqKind::kGroup && name == "list") return seq.items[1];
  if (!seq.is_tuple() && seq.kind != SeqKind::kList) return {};
  if (seq.kind == SeqKind::kList) {
    if (Has(kMutatingList, name)) return runtime.MissingAttribute(object, name, true);
    const Value method = FindIn(runtime, object, kListMethods, name);
    if (!method.is_undefined()) return method;
  }
  return FindIn(runtime, object, kSeqMethods, name);
}

Value MacroField(Runtime& runtime, const Callable& macro, std::string_view name) {
  const Stmt& node = *macro.macro;
  if (name == "name") return macro.name.empty() ? Value::None() : runtime.Text(macro.name);
  if (name == "catch_kwargs") return Value::Bool(node.uses_kwargs);
  if (name == "catch_varargs") return Value::Bool(node.uses_varargs);
  if (name == "caller") return Value::Bool(node.uses_caller);
  return {};
}

Value NamespaceField(Runtime& runtime, Value object, std::string_view name) {
  const Namespace& space = *object.space;
  if (space.cycle != nullptr) {
    if (name == "current") return space.cycle->items[space.position];
    return FindIn(runtime, object, kCyclerMethods, name);
  }
  const Value* found = FindKey(runtime, space.attributes, name);
  return found != nullptr ? *found : Value{};
}

}  // namespace

bool IsObjectAttribute(std::string_view name) {
  // Of object, of functions, classes and modules, and of containers and numbers.
  static constexpr std::string_view kNames[] = {
      "class",      "delattr", "dict",          "dir",          "doc",         "eq",
      "format",     "ge",      "getattr",       "getattribute", "getstate",    "gt",
      "hash",       "init",    "init_subclass", "le",           "lt",          "module",
      "ne",         "new",     "reduce",        "reduce_ex",    "repr",        "setattr",
      "sizeof",     "slots",   "str",           "subclasshook", "weakref",     "annotations",
      "base",       "bases",   "builtins",      "call",         "closure",     "code",
      "defaults",   "func",    "globals",       "import",       "kwdefaults",  "loader",
      "mro",        "name",    "package",       "qualname",     "self",        "spec",
      "subclasses", "wrapped", "abs",           "add",          "bool",        "contains",
      "delitem",    "float",   "floordiv",      "getitem",      "int",         "iter",
      "len",        "mod",     "mul",           "neg",          "next",        "or",
      "pos",        "pow",     "radd",          "reversed",     "rmod",        "rmul",
      "setitem",    "sub",     "truediv",       "html",         "html_format", "class_getitem"};
  if (name.size() < 5 || !name.starts_with("__") || !name.ends_with("__")) return false;
  const std::string_view inner = name.substr(2, name.size() - 4);
  return std::find(std::begin(kNames), std::end(kNames), inner) != std::end(kNames);
}

Value FindMethodOrField(Runtime& runtime, Value object, std::string_view name) {
  if (IsObjectAttribute(name)) {
    return runtime.MissingAttribute(object, name, true);
  }
  switch (object.kind) {
    case Kind::kString: {
      const NativeFn function = FindStringMethod(name);
      return function == nullptr ? Value{} : Bind(runtime, object, name, function);
    }
    case Kind::kDict:
      if (Has(kMutatingDict, name)) return runtime.MissingAttribute(object, name, true);
      return FindIn(runtime, object, kDictMethods, name);
    case Kind::kSeq:
      return SeqField(runtime, object, name);
    case Kind::kLoop:
      return LoopField(runtime, object, name);
    case Kind::kNamespace:
      return NamespaceField(runtime, object, name);
    case Kind::kCallable:
      return object.callable->macro != nullptr ? MacroField(runtime, *object.callable, name)
                                               : Value{};
    default:
      return {};
  }
}

}  // namespace vivace::jinja
