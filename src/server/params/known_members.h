// Which members the nested objects of a request have, as data: one that no list has is reported,
// one of a wrong type refused. What depends on more than its type is its reader's.
//
// The lists are constant; every function is pure and may be called from any thread.
#pragma once

#include <boost/json/value.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/params/request_params.h"

namespace vivace::server {

enum class MemberType : uint8_t { kAny, kString, kBool };

struct KnownMember {
  std::string_view name;
  MemberType type = MemberType::kAny;       // kAny: its reader checks it
  std::span<const KnownMember> inner = {};  // of it, or of each object of a list; empty: any
};
using KnownMembers = std::span<const KnownMember>;

extern const KnownMembers kChatMessageMembers, kChatToolMembers, kChatToolChoiceMembers;
extern const KnownMembers kFlatToolMembers, kFlatToolChoiceMembers;  // of Responses
extern const KnownMembers kResponseFormatMembers;
extern const KnownMembers kTextMembers, kOutputConfigMembers;

// Walks an object, or the objects of a list, down to where the lists end. Null is absent.
Status CheckMembers(const json::value& value, const std::string& path, KnownMembers members,
                    RequestParams* params);

// A copy without the members that CheckMembers reports.
json::value OnlyKnown(const json::value& value, KnownMembers members);

}  // namespace vivace::server
