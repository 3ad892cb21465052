// Global functions: jinja2's own and the two Hugging Face adds.
#include <array>
#include <cmath>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/strftime.h"

namespace vivace::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same

Value RangeGlobal(Runtime& runtime, Value, const Args& args) {
  const Params params("range", args, {"start", "stop", "step"}, 1);
  if (!args.named.empty()) Raise(kBadArgument, "range has no named arguments");
  Range* range = runtime.arena.New<Range>();
  const bool one = !params.Has(1);
  range->start = one ? 0 : params.Int(0, 0);
  range->stop = params.Int(one ? 0 : 1, 0);
  range->step = params.Int(2, 1);
  if (range->step == 0) Raise(kBadArgument, "range needs a step that is not zero");
  if (range->size() > kMaxRange) {
    Raise(kStepLimit, "a range of more than {} items takes too many steps", kMaxRange);
  }
  return Value::Of(range);
}

Value DictGlobal(Runtime& runtime, Value, const Args& args) {
  Dict* dict = runtime.arena.New<Dict>(&runtime.arena);
  if (args.positional.size() > 1) Raise(kBadArgument, "dict takes one positional argument at most");
  if (!args.positional.empty()) {
    const Value source = args.positional[0];
    if (source.kind == Kind::kDict) {
      dict->entries = source.dict->entries;
    } else {
      if (!IsIterable(source)) Raise(kBadArgument, "dict needs a mapping or pairs");
      for (const Value& pair : Items(runtime, source)) {
        const auto items = IsIterable(pair) ? Items(runtime, pair) : std::span<const Value>();
        if (items.size() != 2) Raise(kBadArgument, "dict needs pairs");
        SetKey(runtime, *dict, items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : args.named) SetKey(runtime, *dict, runtime.Text(name), value);
  return Value::Of(dict);
}

Value NamespaceGlobal(Runtime& runtime, Value, const Args& args) {
  Namespace* space = runtime.arena.New<Namespace>(&runtime.arena);
  space->attributes.entries = DictGlobal(runtime, {}, args).dict->entries;
  return Value::Of(space);
}

Value CyclerGlobal(Runtime& runtime, Value, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) Raise(kBadArgument, "cycler needs items");
  Namespace* cycler = runtime.arena.New<Namespace>(&runtime.arena);
  cycler->cycle = runtime.NewSeq(SeqKind::kTuple);
  cycler->cycle->items.assign(args.positional.begin(), args.positional.end());
  return Value::Of(cycler);
}

// Its self is a list of the separator and whether it was called before.
Value JoinerCall(Runtime& runtime, Value self, const Args& args) {
  Params("joiner", args, {});
  Value& used = self.seq->items[1];
  if (!std::exchange(used, Value::Bool(true)).boolean) return runtime.Text("");
  return self.seq->items[0];
}

Value JoinerGlobal(Runtime& runtime, Value, const Args& args) {
  const Params params("joiner", args, {"sep"});
  Callable* joiner = runtime.arena.New<Callable>();
  joiner->name = "joiner";
  joiner->native = JoinerCall;
  joiner->self = runtime.List({params.Get(0, runtime.Text(", ")), Value::Bool(false)});
  return Value::Of(joiner);
}

Value RaiseExceptionGlobal(Runtime& runtime, Value, const Args& args) {
  const Params params("raise_exception", args, {"message"}, 1);
  throw TemplateError{kRaisedByTemplate,
                      std::string(ToFlatStr(runtime, params.Get(0))->view().substr(0, 1000))};
}

Value StrftimeNowGlobal(Runtime& runtime, Value, const Args& args) {
  const Params params("strftime_now", args, {"format"}, 1);
  const Str* format = params.OptionalStr(runtime, 0);
  constexpr size_t kMaxFormat = 1'024;
  if (format == nullptr || format->size > kMaxFormat) {
    Raise(kBadArgument, "strftime_now needs a format of at most {} bytes", kMaxFormat);
  }
  return runtime.Text(FormatTime(format->view(), runtime.now), format->trusted);
}

Value LipsumGlobal(Runtime&, Value, const Args&) {
  Raise(kBadArgument, "lipsum is random text and not available in chat templates");
}

constexpr Builtin kGlobals[] = {{"range", RangeGlobal},
                                {"dict", DictGlobal},
                                {"namespace", NamespaceGlobal},
                                {"cycler", CyclerGlobal},
                                {"joiner", JoinerGlobal},
                                {"lipsum", LipsumGlobal},
                                {"raise_exception", RaiseExceptionGlobal},
                                {"strftime_now", StrftimeNowGlobal}};

}  // namespace

std::span<const Builtin> Globals() { return kGlobals; }

}  // namespace vivace::jinja
