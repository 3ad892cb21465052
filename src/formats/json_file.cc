#include "formats/json_file.h"

#include <boost/json/parser.hpp>

#include "base/limits.h"
#include "base/mapped_file.h"

namespace vivace::formats {

namespace json = boost::json;

Result<json::object> ReadJsonObject(const std::string& path, size_t max_bytes) {
  VIVACE_ASSIGN(const MappedFile file, MappedFile::Open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    return FileFault(ErrorCode::kCorruptData, "file_limit", path, "",
                     fmt::format("has {} bytes, over the limit of {}", bytes.size(), max_bytes));
  }
  json::parse_options options;
  options.max_depth = limits::kJsonDepth;
  json::parser parser({}, options);
  json::error_code ec;
  const char* const text = reinterpret_cast<const char*>(bytes.data());
  const size_t parsed = parser.write_some(text, bytes.size(), ec);
  if (!ec && parsed < bytes.size()) ec = json::error::extra_data;
  if (ec == json::error::too_deep) {
    return FileFault(ErrorCode::kCorruptData, "nesting_limit", path, "",
                     fmt::format("nests over {} JSON values", limits::kJsonDepth));
  }
  if (ec) {
    return FileFault(ErrorCode::kCorruptData, "bad_json", path, "",
                     fmt::format("is not JSON, at byte {}: {}", parsed, ec.message()));
  }
  json::value value = parser.release();
  if (!value.is_object()) {
    return FileFault(ErrorCode::kCorruptData, "bad_json", path, "", "is not a JSON object");
  }
  return std::move(value.get_object());
}

}  // namespace vivace::formats
