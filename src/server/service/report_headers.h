// How an answer's head names what of its request was not taken as it was given: x-vivace-ignored
// ("a,b"), x-vivace-clamped ("max_tokens=12") and x-vivace-renamed ("n_predict=max_tokens").
#pragma once

#include "server/http/http.h"
#include "server/params/request_params.h"

namespace vivace::server {

// Adds those that have something to say. Names that are no plain words are left out.
void AddReportHeaders(const Reports& reports, Headers* headers);

}  // namespace vivace::server
