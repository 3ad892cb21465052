#include "server/http/http.h"

#include <algorithm>

#include "server/http/policy.h"

namespace vivace::server {

std::string_view HttpRequest::header(std::string_view name) const {
  const auto field = std::find_if(headers.begin(), headers.end(),
                                  [name](const auto& f) { return f.first == name; });
  return field == headers.end() ? std::string_view{} : std::string_view(field->second);
}

std::string DecodedPath(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    const bool escape = path[i] == '%' && i + 2 < path.size();
    out += escape ? static_cast<char>(HexValue(path[i + 1]) * 16 + HexValue(path[i + 2])) : path[i];
    if (escape) i += 2;
  }
  return out;
}

}  // namespace vivace::server
