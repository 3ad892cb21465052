// Where tests find files. The only file that knows is paths.cc, so that the others compile to the same
// bytes in every clone and a compiler cache serves them all.
#pragma once

#include <string>

namespace vivace::testing {

std::string SourceDir();  // the project's root
std::string BinaryDir();  // of this build

}  // namespace vivace::testing
