#include "server/json/json_writer.h"

#include <charconv>

#include "base/json_text.h"

namespace vivace::server {

void JsonWriter::Key(std::string_view name) {
  Comma();
  AppendJsonString(*out_, name);
  out_->push_back(':');
  need_comma_ = false;
}

void JsonWriter::String(std::string_view text) {
  Comma();
  AppendJsonString(*out_, text);
}

void JsonWriter::Int(int64_t value) {
  Comma();
  char digits[24];
  const auto [end, ec] = std::to_chars(digits, digits + sizeof(digits), value);
  out_->append(digits, end);
}

void JsonWriter::Float(float value) {
  Comma();
  char digits[32];
  const auto [end, ec] = std::to_chars(digits, digits + sizeof(digits), value);
  out_->append(digits, end);
}

void JsonWriter::Literal(std::string_view json) {
  Comma();
  out_->append(json);
}

void JsonWriter::KeyInts(std::string_view name, std::span<const int32_t> values) {
  Key(name);
  BeginArray();
  for (const int32_t value : values) Int(value);
  EndArray();
}

}  // namespace vivace::server
