// Members of parsed JSON objects.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string_view>
#include <utility>

namespace vivace {

// A member; null where there is none or it is null, which counts as absent.
inline const boost::json::value* FindPresent(const boost::json::object& object,
                                             std::string_view name) {
  const boost::json::value* value = object.if_contains({name.data(), name.size()});
  return value == nullptr || value->is_null() ? nullptr : value;
}

// Leaves the members of which `keep(name, value)` holds, in their order. Linear: erasing them one
// by one moves all that is behind each time.
template <typename Keep>
void KeepMembers(boost::json::object* object, Keep keep) {
  boost::json::object kept(object->storage());
  for (auto& [name, value] : *object) {
    if (keep(std::string_view(name), value)) kept.emplace(name, std::move(value));
  }
  *object = std::move(kept);
}

}  // namespace vivace
