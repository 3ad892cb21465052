#include "server/web/web_files.h"

#include <algorithm>

namespace vivace::server {
namespace {

struct Type {
  std::string_view ending;
  const char* content_type;
};
constexpr Type kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
};

const char* ContentType(std::string_view name) {
  for (const Type& type : kTypes) {
    if (name.ends_with(type.ending)) return type.content_type;
  }
  return "application/octet-stream";
}

}  // namespace

const WebFile* FindWebFile(std::string_view name) {
  const auto files = WebFiles();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [name](const WebFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

Headers WebFileHeaders(const WebFile& file) {
  return {{"content-type", ContentType(file.name)},
          {"content-security-policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
           "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
          {"x-content-type-options", "nosniff"},
          {"referrer-policy", "no-referrer"},
          {"cache-control", "no-cache"}};
}

}  // namespace vivace::server
