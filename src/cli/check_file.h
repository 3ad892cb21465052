// `vivace inspect --check`: every check that loading a file would do, without loading it.
#pragma once

#include <string>

#include "base/result.h"

namespace vivace::cli {

// A GGUF model, a safetensors file, a tokenizer.json or a chat template (.jinja). Errors are one
// line that names the file, what in it is at fault, and why.
Status CheckFile(const std::string& path);

}  // namespace vivace::cli
