// The names of a record's and a sample's members in report files, for the writer and the reader.
#pragma once

#include <span>
#include <string_view>

#include "load/record.h"
#include "load/run_result.h"

namespace vivace::load {

struct TimeField {
  std::string_view name;
  int64_t RequestRecord::*member;
  bool may_lack = true;  // 0 says never: null
};
struct CountField {
  std::string_view name;
  int32_t RequestRecord::*member;
};
struct SampleField {
  std::string_view name;
  double ServerSample::*member;
};

std::span<const TimeField> TimeFields();
std::span<const CountField> CountFields();
std::span<const SampleField> SampleFields();

}  // namespace vivace::load
