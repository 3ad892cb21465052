// Tools for a model whose template knows none: they are told in a system message, calls and results
// of the conversation become text. Pure; any thread.
#pragma once

#include <boost/json/array.hpp>

namespace vivace::server {

// `messages` as NormalizeMessages makes them; `tools`: null for none. `system_role`: the template
// takes a system message; else the first user's message begins with the description.
boost::json::array WithDescribedTools(boost::json::array messages, const boost::json::array* tools,
                                      bool system_role);

}  // namespace vivace::server
