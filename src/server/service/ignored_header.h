// How an answer names the request members that had no effect: the header x-vivace-ignored.
#pragma once

#include <span>
#include <string>

#include "server/http/http.h"

namespace vivace::server {

// Adds the header unless there is nothing to name. Names that are no plain words are left out.
void AddIgnoredHeader(std::span<const std::string> names, Headers* headers);

}  // namespace vivace::server
