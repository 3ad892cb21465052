// Ids of tool calls: random, so that no two of any conversation are alike.
#pragma once

#include <string>

namespace vivace::server {

// "call_" and 24 hexadecimal digits; `short_form`: nine letters and digits, which is all that
// Mistral's templates take. Any thread.
std::string NewCallId(bool short_form);

}  // namespace vivace::server
