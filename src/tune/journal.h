// What `vivace tune` has measured, on the disk after each trial, so that an interrupted run goes
// on.
//
// JSON lines. The first says what was measured: version, model, machine, traffic, objective; a
// journal of something else is refused with what differs. Each further line is one thing
// (run_journal.h) and is on the disk (fsync) when Append returns. A last line that
// was cut off is dropped; any other line that is wrong is an error with its number. One process at
// a time: the file is locked. One thread.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/result.h"

namespace vivace::tune {

class Journal {
 public:
  static constexpr int kVersion = 2;

  // Opens or begins the journal at `path`. `header` has one member for each thing that must be the
  // same, {"model": {...}, "machine": {...}, ...}.
  static Result<Journal> Open(const std::string& path, const boost::json::object& header);

  // What it held, in order; the header is not among them. {"kind": ..., ...}
  const std::vector<boost::json::object>& entries() const { return entries_; }
  bool resumed() const { return resumed_; }
  bool dropped_line() const { return dropped_line_; }  // its last one had been cut off

  // Adds {"kind": kind} and the members of `entry`.
  Status Append(std::string_view kind, boost::json::object entry);

 private:
  Journal(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  Status Read(const boost::json::object& header);
  Status WriteLine(const boost::json::object& line);

  std::string path_;
  Descriptor file_;
  size_t size_ = 0;  // bytes of whole lines
  std::vector<boost::json::object> entries_;
  bool resumed_ = false;
  bool dropped_line_ = false;
};

}  // namespace vivace::tune
