// Files that a person asked for by a flag: refused before anything is measured where they cannot be
// written, and named in the error where they could not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vivace {

// Whether a file could be made at `path`: its folder is there and lets us. Empty: none is wanted.
Status CheckOutputPath(const std::string& path);

// The same for all of a command's, of which no two may be one file.
Status CheckOutputPaths(const std::vector<std::string>& paths);

// Replaces what was there, whole or not at all; what is no plain file, such as a pipe, is written
// to.
Status WriteOutput(const std::string& path, std::string_view text);

}  // namespace vivace
