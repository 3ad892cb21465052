#include "text/jinja/value.h"

namespace vivace::jinja {

int64_t Range::size() const {
  // Through unsigned words: the distance of two int64 always fits there.
  const auto distance = [](int64_t from, int64_t to, uint64_t stride) -> uint64_t {
    return from >= to ? 0
                      : (static_cast<uint64_t>(to) - static_cast<uint64_t>(from) - 1) / stride + 1;
  };
  const uint64_t count = step > 0 ? distance(start, stop, static_cast<uint64_t>(step))
                                  : distance(stop, start, 0 - static_cast<uint64_t>(step));
  return count > INT64_MAX ? INT64_MAX : static_cast<int64_t>(count);
}

std::string_view TypeName(Value value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kRange:
      return "range";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return value.space->cycle != nullptr ? "Cycler" : "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCallable:
      return value.callable->macro != nullptr ? "Macro" : "function";
    case Kind::kSeq:
      break;
  }
  switch (value.seq->kind) {
    case SeqKind::kList:
      return "list";
    case SeqKind::kTuple:
      return "tuple";
    case SeqKind::kGroup:
      return "_GroupTuple";
    case SeqKind::kGenerator:
      return "generator";
    case SeqKind::kDictKeys:
      return "dict_keys";
    case SeqKind::kDictValues:
      return "dict_values";
    case SeqKind::kDictItems:
      return "dict_items";
  }
  return "object";
}

}  // namespace vivace::jinja
