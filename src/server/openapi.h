// The API as an OpenAPI 3.1 document, made of the routes and the parameter table: what the server
// reads is what the document says. What answers look like is in openapi_answers.h, coarsely.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/router.h"

namespace vivace::server {

std::string OpenApiDocument(std::span<const Route> routes, std::string_view version);

}  // namespace vivace::server
