#include "load/report/json_writer.h"

#include <fmt/format.h>

#include <iterator>

#include "base/json_text.h"

namespace vivace::load {

void JsonWriter::Separate() {
  if (comma_) *out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::BeginObject() {
  Separate();
  *out_ += '{';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  *out_ += '}';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  Separate();
  *out_ += '[';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  *out_ += ']';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  Text(name);
  *out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Text(std::string_view value) {
  Separate();
  AppendJsonString(*out_, value);
  return *this;
}

JsonWriter& JsonWriter::Texts(const std::vector<std::string>& values) {
  BeginArray();
  for (const std::string& value : values) Text(value);
  return EndArray();
}

JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  fmt::format_to(std::back_inserter(*out_), "{:.15g}", value);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(*out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  *out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Json(std::string_view value) {
  Separate();
  *out_ += value;
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  *out_ += "null";
  return *this;
}

}  // namespace vivace::load
