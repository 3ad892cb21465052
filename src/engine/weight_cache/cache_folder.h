// The folder entries live in: names, and how much may lie there. All calls touch the disk; any
// thread, and several processes at once.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/weight_cache/entry_key.h"

namespace vivace::weight_cache {

// One entry for a model file and layout: a changed file's entry takes the place of the old one.
// "FOLDER/smollm2-q4_1-3f9c0d1e2b4a5867-x86.weights"
std::string EntryPath(const std::string& folder, const std::string& model_path, Layout layout);

// Makes the folder (mode 0700) and its parents, if need be, and room in it for an entry of `bytes`
// at `entry`: deletes the entries used least recently until all would take at most `most_bytes`,
// and what writers that died left behind. Nothing else in the folder is touched. Reasons: io_error;
// too_large (for most_bytes); disk_full (the disk would keep less than kSpareDiskBytes).
Status MakeRoom(const std::string& folder, const std::string& entry, uint64_t bytes,
                uint64_t most_bytes);

}  // namespace vivace::weight_cache
