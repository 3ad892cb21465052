#include "text/jinja/runtime.h"

#include "text/jinja/operators.h"

namespace vivace::jinja {

Value Runtime::MissingVariable(std::string_view name) {
  Undefined* info = arena.New<Undefined>();
  info->name = name;
  Value value;
  value.undefined = info;
  return value;
}

Value Runtime::MissingAttribute(Value owner, std::string_view name, bool forbidden) {
  Value value = MissingVariable(name);
  const_cast<Undefined*>(value.undefined)->owner = TypeName(owner);
  const_cast<Undefined*>(value.undefined)->forbidden = forbidden;
  return value;
}

Value Runtime::Missing(std::string_view hint) {
  Value value = MissingVariable({});
  const_cast<Undefined*>(value.undefined)->hint = hint;
  return value;
}

void RaiseUndefined(Value value) {
  const Undefined* info = value.undefined;
  if (info == nullptr) Raise(kUndefinedValue, "an undefined value is used");
  const std::string_view name = info->name.substr(0, 80);
  if (info->forbidden) {
    Raise(kForbiddenAttribute, "access to attribute '{}' of '{}' object is unsafe", name,
          info->owner);
  }
  if (!info->hint.empty()) Raise(kUndefinedValue, "{}", info->hint);
  if (info->owner.empty()) Raise(kUndefinedValue, "'{}' is undefined", name);
  Raise(kUndefinedValue, "'{} object' has no attribute '{}'", info->owner, name);
}

Params::Params(std::string_view function, const Args& args,
               std::initializer_list<const char*> names, size_t required)
    : function_(function) {
  std::copy(names.begin(), names.end(), names_);
  if (args.positional.size() > names.size()) {
    Raise(kBadArgument, "{} takes at most {} arguments, got {}", function, names.size(),
          args.positional.size());
  }
  for (size_t i = 0; i < args.positional.size(); ++i) {
    values_[i] = args.positional[i];
    present_[i] = true;
  }
  for (const auto& [name, value] : args.named) {
    size_t i = 0;
    while (i < names.size() && names_[i] != name) ++i;
    if (i == names.size()) Raise(kBadArgument, "{} has no argument named {}", function, name);
    if (present_[i]) Raise(kBadArgument, "{} got its argument {} twice", function, name);
    values_[i] = value;
    present_[i] = true;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!present_[i]) Raise(kBadArgument, "{} needs its argument {}", function, names_[i]);
  }
}

int64_t Params::Int(size_t i, int64_t fallback) const {
  if (!present_[i]) return fallback;
  if (values_[i].is_undefined()) RaiseUndefined(values_[i]);
  if (!values_[i].is_integral()) {
    Raise(kBadArgument, "{} needs an integer for {}, got {}", function_, names_[i],
          TypeName(values_[i]));
  }
  return values_[i].as_integer();
}

bool Params::Truthy(size_t i, bool fallback) const {
  return present_[i] ? IsTrue(values_[i]) : fallback;
}

const Str* Params::OptionalStr(Runtime& runtime, size_t i) const {
  if (!present_[i] || values_[i].is_none()) return nullptr;
  if (values_[i].is_undefined()) RaiseUndefined(values_[i]);
  if (!values_[i].is_string()) {
    Raise(kBadArgument, "{} needs a string for {}, got {}", function_, names_[i],
          TypeName(values_[i]));
  }
  return Flat(runtime.arena, values_[i].str);
}

}  // namespace vivace::jinja
