// The JSON files beside a model's weights (config.json and its like) as one DOM, bounded in size
// and depth. Cost: one read and one DOM. Pure function, any thread.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "formats/untrusted.h"  // FileFault, for what a caller finds wrong in the object

namespace vivace::formats {

// The file's one object. Errors name the file and the byte: file_limit, nesting_limit, bad_json,
// and those of opening (not_found and so on).
Result<boost::json::object> ReadJsonObject(const std::string& path, size_t max_bytes);

}  // namespace vivace::formats
