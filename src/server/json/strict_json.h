// Reads a request body as JSON, strictly: RFC 8259, UTF-8, nesting up to limits::kJsonDepth, finite
// numbers, no member twice, nothing before or after the value.
//
// Cost: one pass and one DOM. Pure function, any thread.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace vivace::server {

namespace json = boost::json;

// What an object with a member twice is.
enum class MemberTwice : uint8_t { kRefused, kLastWins };

// The error (kInvalidArgument, "invalid_json") names the byte where reading stopped and why.
// `what`: what the text is, in a sentence.
Result<json::value> ParseStrictJson(std::string_view text, std::string_view what = "the body",
                                    MemberTwice twice = MemberTwice::kRefused);

// What a value is, as a message names it: "a string", "an object", "null".
std::string_view KindName(const json::value& value);

}  // namespace vivace::server
