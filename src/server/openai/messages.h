// The messages of a chat request: checked, and brought to the one form that chat templates know.
// Pure, any thread; linear in the messages.
#pragma once

#include <boost/json/array.hpp>

#include "base/result.h"
#include "server/params/request_params.h"

namespace vivace::server {

// Each message of the result has "role" and "content", a string or a list of text parts (the
// template joins them if it wants a string), and of the optional members those that templates use:
// "name", "tool_call_id", "thinking", "tool_calls", and "reasoning" or "reasoning_content" under
// both names. The arguments of tool calls become objects. The error's field says which message:
// "messages[3].content".
Result<boost::json::array> NormalizeMessages(const boost::json::array& messages);

}  // namespace vivace::server
