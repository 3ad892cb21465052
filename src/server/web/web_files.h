// The files of web/ as the binary carries them; their list is made by the build
// (cmake/Embed.cmake). Constant data, any thread.
#pragma once

#include <span>
#include <string_view>

#include "server/http/http.h"

namespace vivace::server {

struct WebFile {
  std::string_view name;  // "chat.js"
  std::string_view bytes;
};

std::span<const WebFile> WebFiles();

// Null: there is none of that name.
const WebFile* FindWebFile(std::string_view name);

// How it is answered: its type, and what keeps the page to this server's own scripts.
Headers WebFileHeaders(const WebFile& file);

}  // namespace vivace::server
