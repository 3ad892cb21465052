#include "text/jinja/builtins.h"

#include <unordered_map>

namespace vivace::jinja {
namespace {

using Table = std::unordered_map<std::string_view, NativeFn>;

Table Build(std::initializer_list<std::span<const Builtin>> parts) {
  Table table;
  for (const auto& part : parts) {
    for (const Builtin& builtin : part) table.emplace(builtin.name, builtin.function);
  }
  return table;
}

NativeFn Find(const Table& table, std::string_view name) {
  const auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace

NativeFn FindFilter(std::string_view name) {
  static const Table table = Build({TextFilters(), SequenceFilters(), NumberFilters()});
  return Find(table, name);
}
NativeFn FindTest(std::string_view name) {
  static const Table table = Build({Tests()});
  return Find(table, name);
}
NativeFn FindGlobal(std::string_view name) {
  static const Table table = Build({Globals()});
  return Find(table, name);
}

}  // namespace vivace::jinja
