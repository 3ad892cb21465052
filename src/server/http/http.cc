#include "server/http/http.h"

#include <algorithm>

namespace vivace::server {

std::string_view HttpRequest::header(std::string_view name) const {
  const auto field = std::find_if(headers.begin(), headers.end(),
                                  [name](const auto& f) { return f.first == name; });
  return field == headers.end() ? std::string_view{} : std::string_view(field->second);
}

}  // namespace vivace::server
