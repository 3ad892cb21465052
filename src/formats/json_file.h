// The JSON files beside a model's weights (config.json and its like) as one DOM, bounded in size
// and depth. Cost: one read and one DOM. Pure function, any thread.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>

#include "base/result.h"

namespace vivace::formats {

// The file's one object. Errors name the file and the byte: file_limit, nesting_limit, bad_json,
// and those of opening (not_found and so on).
Result<boost::json::object> ReadJsonObject(const std::string& path, size_t max_bytes);

// "<file>: <field>: <reason>", as GgufFile::Fault makes it.
tl::unexpected<Error> FileFault(ErrorCode code, std::string slug, std::string_view file,
                                std::string_view field, std::string_view text);

}  // namespace vivace::formats
