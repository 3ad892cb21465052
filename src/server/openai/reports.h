// How a whole answer names what of its request was not taken as it was given.
#pragma once

#include "server/json/json_writer.h"
#include "server/params/request_params.h"

namespace vivace::server {

// The member "vivace": {"ignored":[...],"clamped":[{name,wanted,given}],"renamed":[{alias,name}]}
// of an object under way, each list only where there is something to say; "steered":true where the
// end of an output was imposed.
void WriteReports(const Reports& reports, JsonWriter* w);

}  // namespace vivace::server
