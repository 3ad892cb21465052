// Filters over sequences and mappings.
#include <algorithm>
#include <optional>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_ops.h"

namespace vivace::jinja {
namespace {

std::span<const Value> Iterate(Runtime& runtime, Value value) {
  if (!IsIterable(value)) Raise(kBadArgument, "{} can't be iterated", TypeName(value));
  const auto items = Items(runtime, value);
  runtime.ChargeItems(items.size());
  return items;
}

// A generator that `fill` makes. What goes wrong is told to whoever reads past the last item;
// budgets are not deferred.
template <typename Fill>
Value Lazily(Runtime& runtime, Fill&& fill) {
  Seq* out = runtime.NewSeq(SeqKind::kGenerator);
  try {
    fill(*out);
  } catch (const TemplateError& error) {
    const std::string_view reason = error.reason;
    if (reason.ends_with("_limit")) throw;
    const Str* message = CopyStr(runtime.arena, error.message, true);
    out->failure = runtime.arena.New<PendingError>(PendingError{error.reason, message->view()});
  }
  return Value::Of(out);
}

Value LowerIfText(Runtime& runtime, Value value) {
  if (!value.is_string()) return value;
  return Value::Of(MapCase(runtime, Flat(runtime.arena, value.str), Case::kLower));
}

// The attribute argument of filters: "a.b.0", an index, or none (the item itself).
class AttributePath {
 public:
  AttributePath(Runtime& runtime, Value path) : runtime_(runtime) {
    if (path.is_none()) return;
    if (!path.is_string()) {
      keys_.push_back(path);
      return;
    }
    const Str* dot = MakeStr(runtime.arena, ".", true);
    for (const Value& part : Split(runtime, Flat(runtime.arena, path.str), dot, -1, false)->items) {
      const std::string_view text = part.str->view();
      const bool index =
          !text.empty() && text.size() < 18 &&
          std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
      keys_.push_back(index ? Value::Int(std::stoll(std::string(text))) : part);
    }
  }
  Value Of(Value item, std::optional<Value> fallback = std::nullopt) const {
    for (const Value& key : keys_) {
      item = GetItem(runtime_, item, key);
      if (item.is_undefined() && fallback) item = *fallback;
    }
    return item;
  }

 private:
  Runtime& runtime_;
  std::vector<Value> keys_;
};

Value LengthFilter(Runtime& runtime, Value self, const Args& args) {
  Params("length", args, {});
  return Value::Int(Length(runtime, self));
}

Value FirstFilter(Runtime& runtime, Value self, const Args& args) {
  Params("first", args, {});
  if (self.kind == Kind::kSeq && self.seq->kind == SeqKind::kGenerator) {  // takes one item only
    Seq& generator = *self.seq;
    if (generator.consumed < generator.items.size()) return generator.items[generator.consumed++];
    RaisePending(generator);
    return runtime.Missing("No first item, sequence was empty.");
  }
  const auto items = Iterate(runtime, self);
  return items.empty() ? runtime.Missing("No first item, sequence was empty.") : items.front();
}

Value LastFilter(Runtime& runtime, Value self, const Args& args) {
  Params("last", args, {});
  if (self.kind == Kind::kSeq && self.seq->kind == SeqKind::kGenerator) {
    Raise(kBadArgument, "a generator can't be read from its end");
  }
  const auto items = Iterate(runtime, self);
  return items.empty() ? runtime.Missing("No last item, sequence was empty.") : items.back();
}

Value JoinFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("join", args, {"d", "attribute"});
  const Str* separator = params.Has(0) ? ToFlatStr(runtime, params.Get(0)) : nullptr;
  const AttributePath path(runtime, params.Get(1));
  StrBuilder out(runtime.arena);
  bool first = true;
  for (const Value& item : Iterate(runtime, self)) {
    runtime.Charge();
    if (!std::exchange(first, false) && separator != nullptr) out.AppendStr(separator);
    out.AppendStr(ToStr(runtime, path.Of(item)));
  }
  runtime.ChargeBytes(out.size());
  return Value::Of(out.Finish());
}

Value ListFilter(Runtime& runtime, Value self, const Args& args) {
  Params("list", args, {});
  const auto items = Iterate(runtime, self);
  Seq* list = runtime.NewSeq(SeqKind::kList);
  list->items.assign(items.begin(), items.end());
  return Value::Of(list).Tainted(self.tainted);
}

Value ItemsFilter(Runtime& runtime, Value self, const Args& args) {
  Params("items", args, {});
  return Lazily(runtime, [&](Seq& out) {
    if (self.is_undefined()) return;
    if (self.kind != Kind::kDict) {
      Raise(kBadArgument, "items needs a mapping, got {}", TypeName(self));
    }
    runtime.ChargeItems(self.dict->entries.size());
    for (const auto& [key, value] : self.dict->entries) {
      out.items.push_back(runtime.List({key, value}, SeqKind::kTuple).Tainted(self.tainted));
    }
  });
}

// Sorts by the keys, which are compared one by one; stable.
template <typename KeysOf>
void SortBy(Runtime& runtime, std::pmr::vector<Value>& items, bool reverse, KeysOf&& keys_of) {
  struct Keyed {
    Value key, item;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) keyed.push_back({keys_of(item), item});
  if (reverse) std::reverse(keyed.begin(), keyed.end());  // stable in reverse, as Python's is
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return Test(runtime, Op::kLt, a.key, b.key);
  });
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  for (size_t i = 0; i < items.size(); ++i) items[i] = keyed[i].item;
}

Value DictSortFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("dictsort", args, {"case_sensitive", "by", "reverse"});
  if (self.is_undefined()) RaiseUndefined(self);
  if (self.kind != Kind::kDict) Raise(kBadArgument, "dictsort needs a mapping");
  const Str* by = params.OptionalStr(runtime, 1);
  if (by != nullptr && by->view() != "key" && by->view() != "value") {
    Raise(kBadArgument, "dictsort sorts by \"key\" or by \"value\"");
  }
  const size_t position = by != nullptr && by->view() == "value" ? 1 : 0;
  const bool case_sensitive = params.Truthy(0, false);
  Seq* list = runtime.NewSeq(SeqKind::kList);
  for (const auto& [key, value] : self.dict->entries) {
    list->items.push_back(runtime.List({key, value}, SeqKind::kTuple).Tainted(self.tainted));
  }
  SortBy(runtime, list->items, params.Truthy(2, false), [&](Value pair) {
    const Value key = pair.seq->items[position];
    return case_sensitive ? key : LowerIfText(runtime, key);
  });
  return Value::Of(list).Tainted(self.tainted);
}

Value SortFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("sort", args, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = params.Truthy(1, false);
  std::vector<AttributePath> paths;
  if (params.Get(2).is_string()) {
    const Str* comma = MakeStr(runtime.arena, ",", true);
    for (const Value& part :
         Split(runtime, Flat(runtime.arena, params.Get(2).str), comma, -1, false)->items) {
      paths.emplace_back(runtime, part);
    }
  } else {
    paths.emplace_back(runtime, params.Get(2));
  }
  Seq* list = runtime.NewSeq(SeqKind::kList);
  const auto items = Iterate(runtime, self);
  list->items.assign(items.begin(), items.end());
  SortBy(runtime, list->items, params.Truthy(0, false), [&](Value item) {
    Seq* keys = runtime.NewSeq(SeqKind::kList);
    for (const AttributePath& path : paths) {
      const Value key = path.Of(item);
      keys->items.push_back(case_sensitive ? key : LowerIfText(runtime, key));
    }
    return Value::Of(keys);
  });
  return Value::Of(list).Tainted(self.tainted);
}

Value UniqueFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("unique", args, {"case_sensitive", "attribute"});
  const bool case_sensitive = params.Truthy(0, false);
  const Value unique = Lazily(runtime, [&](Seq& out) {
    const AttributePath path(runtime, params.Get(1));
    Dict seen(&runtime.arena);
    for (const Value& item : Iterate(runtime, self)) {
      Value key = path.Of(item);
      if (!case_sensitive) key = LowerIfText(runtime, key);
      if (!IsHashable(key)) Raise(kBadArgument, "{} can't be a key", TypeName(key));
      if (FindKey(runtime, seen, key) != nullptr) continue;
      seen.entries.emplace_back(key, Value::None());
      out.items.push_back(item);
    }
  });
  return unique.Tainted(self.tainted);
}

template <bool kMax>
Value ExtremeFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params(kMax ? "max" : "min", args, {"case_sensitive", "attribute"});
  const bool case_sensitive = params.Truthy(0, false);
  const AttributePath path(runtime, params.Get(1));
  std::optional<Value> best, best_key;
  for (const Value& item : Iterate(runtime, self)) {
    Value key = path.Of(item);
    if (!case_sensitive) key = LowerIfText(runtime, key);
    if (best && !Test(runtime, kMax ? Op::kGt : Op::kLt, key, *best_key)) continue;
    best = item;
    best_key = key;
  }
  return best ? *best : runtime.Missing("No aggregated item, sequence was empty.");
}

Value SumFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("sum", args, {"attribute", "start"});
  const AttributePath path(runtime, params.Get(0));
  Value sum = params.Get(1, Value::Int(0));
  if (sum.is_string()) Raise(kBadArgument, "sum can't add strings");
  for (const Value& item : Iterate(runtime, self)) {
    sum = Arithmetic(runtime, Op::kAdd, sum, path.Of(item));
  }
  return sum;
}

Value ReverseFilter(Runtime& runtime, Value self, const Args& args) {
  Params("reverse", args, {});
  if (self.is_string()) {
    return SliceOf(runtime, self, Value::None(), Value::None(), Value::Int(-1));
  }
  const auto items = Iterate(runtime, self);
  const bool list = self.kind == Kind::kSeq && self.seq->kind == SeqKind::kGenerator;
  Seq* out = runtime.NewSeq(list ? SeqKind::kList : SeqKind::kGenerator);
  out->items.assign(items.rbegin(), items.rend());
  return Value::Of(out).Tainted(self.tainted);
}

Value BatchFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("batch", args, {"linecount", "fill_with"}, 1);
  return Lazily(runtime, [&](Seq& out) {
    const int64_t count = params.Int(0, 1);
    Seq* row = runtime.NewSeq(SeqKind::kList);
    for (const Value& item : Iterate(runtime, self)) {
      runtime.Charge();
      if (static_cast<int64_t>(row->items.size()) == count) {
        out.items.push_back(Value::Of(std::exchange(row, runtime.NewSeq(SeqKind::kList))));
      }
      row->items.push_back(item);
    }
    if (row->items.empty()) return;
    if (!params.Get(1).is_none() && static_cast<int64_t>(row->items.size()) < count) {
      const auto size = static_cast<size_t>(count);
      if (size > limits::kTemplateLiveBytes / sizeof(Value)) {
        Raise(kMemoryLimit, "a batch is too long");
      }
      runtime.ChargeItems(size);
      row->items.resize(size, params.Get(1));
    }
    out.items.push_back(Value::Of(row));
  });
}

Value SliceFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("slice", args, {"slices", "fill_with"}, 1);
  return Lazily(runtime, [&](Seq& out) {
    const int64_t slices = params.Int(0, 1);
    const auto items = Iterate(runtime, self);
    if (slices == 0) Raise(kBadArgument, "slice needs at least one slice");
    if (slices < 0) return;
    const size_t each = items.size() / static_cast<size_t>(slices);
    const auto longer = static_cast<int64_t>(items.size() % static_cast<size_t>(slices));
    size_t at = 0;
    for (int64_t i = 0; i < slices; ++i) {
      runtime.Charge();
      Seq* part = runtime.NewSeq(SeqKind::kList);
      const size_t size = each + (i < longer ? 1 : 0);
      part->items.assign(items.begin() + static_cast<ptrdiff_t>(at),
                         items.begin() + static_cast<ptrdiff_t>(at + size));
      at += size;
      if (!params.Get(1).is_none() && i >= longer) part->items.push_back(params.Get(1));
      out.items.push_back(Value::Of(part));
    }
  });
}

Value GroupByFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const AttributePath path(runtime, params.Get(0));
  const bool case_sensitive = params.Truthy(2, false);
  const std::optional<Value> fallback =
      params.Get(1).is_none() ? std::nullopt : std::optional(params.Get(1));
  const auto key_of = [&](Value item) {
    const Value key = path.Of(item, fallback);
    return case_sensitive ? key : LowerIfText(runtime, key);
  };
  Seq* sorted = runtime.NewSeq(SeqKind::kList);
  const auto items = Iterate(runtime, self);
  sorted->items.assign(items.begin(), items.end());
  SortBy(runtime, sorted->items, false, key_of);
  Seq* out = runtime.NewSeq(SeqKind::kList);
  std::optional<Value> current;
  for (const Value& item : sorted->items) {
    const Value key = key_of(item);
    if (!current || !Equal(runtime, *current, key)) {
      const Value shown = case_sensitive ? key : path.Of(item, fallback);
      out->items.push_back(
          runtime.List({shown, Value::Of(runtime.NewSeq(SeqKind::kList))}, SeqKind::kGroup));
      current = key;
    }
    out->items.back().seq->items[1].seq->items.push_back(item);
  }
  return Value::Of(out);
}

NativeFn NeedFilter(Runtime& runtime, Value name) {
  if (!name.is_string()) Raise(kBadArgument, "map needs the name of a filter");
  const std::string_view text = Flat(runtime.arena, name.str)->view();
  const NativeFn filter = FindFilter(text);
  if (filter == nullptr) Raise("unknown_filter", "there is no filter named {}", text.substr(0, 80));
  return filter;
}

NativeFn NeedTest(Runtime& runtime, Value name) {
  if (!name.is_string()) Raise(kBadArgument, "select needs the name of a test");
  const std::string_view text = Flat(runtime.arena, name.str)->view();
  const NativeFn test = FindTest(text);
  if (test == nullptr) Raise("unknown_test", "there is no test named {}", text.substr(0, 80));
  return test;
}

void MapAttribute(Runtime& runtime, std::span<const Value> items, const Args& args, Seq& out) {
  const Params params("map", args, {"attribute", "default"});
  const AttributePath path(runtime, params.Get(0));
  const std::optional<Value> fallback =
      params.Get(1).is_none() ? std::nullopt : std::optional(params.Get(1));
  for (const Value& item : items) out.items.push_back(path.Of(item, fallback));
}

Value MapFilter(Runtime& runtime, Value self, const Args& args) {
  return Lazily(runtime, [&](Seq& out) {
    if (!IsTrue(self)) return;
    const bool by_attribute = args.positional.empty() &&
                              std::any_of(args.named.begin(), args.named.end(),
                                          [](const auto& arg) { return arg.first == "attribute"; });
    if (by_attribute) return MapAttribute(runtime, Iterate(runtime, self), args, out);
    if (args.positional.empty()) Raise(kBadArgument, "map needs the name of a filter");
    const Args rest{args.positional.subspan(1), args.named};
    for (const Value& item : Iterate(runtime, self)) {
      const NativeFn filter = NeedFilter(runtime, args.positional[0]);
      runtime.Charge();
      const Runtime::Nesting nesting(runtime);  // map(map(…)) nests native calls
      out.items.push_back(filter(runtime, item, rest));
    }
  });
}

template <bool kKeep, bool kByAttribute>
Value SelectFilter(Runtime& runtime, Value self, const Args& args) {
  return Lazily(runtime, [&](Seq& out) {
    if (!IsTrue(self)) return;
    constexpr size_t kFirst = kByAttribute ? 1 : 0;
    if (args.positional.size() < kFirst) {
      Raise(kBadArgument, "the name of an attribute is missing");
    }
    const AttributePath path(runtime, kByAttribute ? args.positional[0] : Value::None());
    const bool tested = args.positional.size() > kFirst;
    const Args rest{tested ? args.positional.subspan(kFirst + 1) : std::span<const Value>(),
                    args.named};
    for (const Value& item : Iterate(runtime, self)) {
      runtime.Charge();
      const Value subject = path.Of(item);
      const Value verdict =
          tested ? NeedTest(runtime, args.positional[kFirst])(runtime, subject, rest) : subject;
      if (IsTrue(verdict) == kKeep) out.items.push_back(item);
    }
  });
}

Value AttrFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("attr", args, {"name"}, 1);
  const Str* name = params.OptionalStr(runtime, 0);
  if (name == nullptr) Raise(kBadArgument, "attr needs a name");
  if (self.is_undefined()) RaiseUndefined(self);
  if (self.kind == Kind::kDict && FindKey(runtime, *self.dict, name->view()) != nullptr) {
    const Value method = GetAttribute(runtime, self, name->view());
    if (method.kind != Kind::kCallable) return runtime.MissingAttribute(self, name->view());
    return method;
  }
  return GetAttribute(runtime, self, name->view());
}

constexpr Builtin kSequenceFilters[] = {{"length", LengthFilter},
                                        {"count", LengthFilter},
                                        {"first", FirstFilter},
                                        {"last", LastFilter},
                                        {"join", JoinFilter},
                                        {"list", ListFilter},
                                        {"items", ItemsFilter},
                                        {"dictsort", DictSortFilter},
                                        {"sort", SortFilter},
                                        {"unique", UniqueFilter},
                                        {"min", ExtremeFilter<false>},
                                        {"max", ExtremeFilter<true>},
                                        {"sum", SumFilter},
                                        {"reverse", ReverseFilter},
                                        {"batch", BatchFilter},
                                        {"slice", SliceFilter},
                                        {"groupby", GroupByFilter},
                                        {"map", MapFilter},
                                        {"select", SelectFilter<true, false>},
                                        {"reject", SelectFilter<false, false>},
                                        {"selectattr", SelectFilter<true, true>},
                                        {"rejectattr", SelectFilter<false, true>},
                                        {"attr", AttrFilter}};

}  // namespace

std::span<const Builtin> SequenceFilters() { return kSequenceFilters; }

}  // namespace vivace::jinja
