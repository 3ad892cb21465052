#include "support/paths.h"

namespace vivace::testing {

std::string SourceDir() { return VIVACE_SOURCE_DIR; }
std::string BinaryDir() { return VIVACE_BINARY_DIR; }

}  // namespace vivace::testing
