// The JSON objects of a user's file, one a line or the elements of one array, and the refusals of
// what is wrong with them: always with the file, the line and why.
//
// Cost: one pass to find them, none is parsed before it is asked for. The file stays mapped.
#pragma once

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace vivace::load {

struct Entry {
  std::string_view text;
  size_t line = 0;  // where it begins, from 1
};

class EntryFile {
 public:
  // Finds at most `most` entries. Files beyond limits::kMaxDatasetBytes are refused.
  static Result<EntryFile> Open(const std::string& path, size_t most);

  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view text() const;  // all of it
  const std::string& path() const { return file_.path(); }

  Result<boost::json::object> Parse(const Entry& entry) const;

  // corrupt_data: "PATH, line 3: WHY".
  template <typename... Args>
  tl::unexpected<Error> Broken(const Entry& entry, fmt::format_string<Args...> why,
                               Args&&... args) const {
    return Fail(ErrorCode::kCorruptData, "bad_dataset", "dataset-path", "{}, line {}: {}", path(),
                entry.line, fmt::format(why, std::forward<Args>(args)...));
  }

  // Members, if they are there; an error where they are something else or out of range.
  Result<std::optional<int64_t>> Count(const Entry& entry, const boost::json::object& object,
                                       std::string_view name, int64_t least, int64_t most) const;
  Result<std::optional<double>> Number(const Entry& entry, const boost::json::object& object,
                                       std::string_view name, double least, double most) const;

 private:
  explicit EntryFile(MappedFile file) : file_(std::move(file)) {}
  Status FindLines(size_t most);
  Status FindElements(size_t begin, size_t most);

  MappedFile file_;
  std::vector<Entry> entries_;
};

}  // namespace vivace::load
