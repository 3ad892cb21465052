// Reads a request body as JSON, strictly: RFC 8259, UTF-8, nesting up to limits::kJsonDepth, finite
// numbers, no member twice, nothing before or after the value.
//
// Cost: one pass and one DOM. Pure function, any thread.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
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

// An integer, however it is written: 2, 2.0, 2e0, as JSON Schema has it.
std::optional<int64_t> AsInteger(const json::value& value);

// What a value is, as a message names it: "a string", "an object", "null".
std::string_view KindName(const json::value& value);

}  // namespace vivace::server
