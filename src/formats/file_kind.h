// Which kind of model file this is: by its first bytes, else by its name.
#pragma once

#include <string>

#include "base/result.h"

namespace vivace::formats {

enum class FileKind { kGguf, kSafetensors, kTokenizerJson, kChatTemplate, kUnknown };

// Opens the file and reads at most its first 16 bytes. Fails if it cannot be opened.
Result<FileKind> DetectFileKind(const std::string& path);

}  // namespace vivace::formats
