// Where a user's caches are, by the XDG base directory rules: the only environment variables the
// program reads, and only for a default.
#pragma once

#include <string>

namespace vivace::cli {

// $XDG_CACHE_HOME/vivace, else $HOME/.cache/vivace; empty if neither names an absolute path.
std::string UserCacheFolder();

}  // namespace vivace::cli
