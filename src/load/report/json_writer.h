// Writes JSON front to back, so that a report of millions of gaps needs no tree of them. Texts may
// be anything (json_text.h); what is not finite becomes null. One thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vivace::load {

class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view name);
  JsonWriter& Text(std::string_view value);
  JsonWriter& Texts(const std::vector<std::string>& values);  // an array
  JsonWriter& Number(double value);  // 15 digits: what any reader gives back as it was
  JsonWriter& Int(int64_t value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Json(std::string_view value);  // as it is

 private:
  void Separate();

  std::string* out_;
  bool comma_ = false;
};

}  // namespace vivace::load
