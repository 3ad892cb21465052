// The moment at which tests/oracles/jinja_oracle.py renders templates.
#pragma once

#include <ctime>

namespace vivace::testing {

// 4 July 2026, 15:05:09.
inline std::tm OracleTime() {
  std::tm now = {};
  now.tm_year = 126;
  now.tm_mon = 6;
  now.tm_mday = 4;
  now.tm_hour = 15;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 6;
  now.tm_yday = 184;
  return now;
}

}  // namespace vivace::testing
