// Appends JSON to a caller's buffer: no DOM, no allocation beyond the buffer's growth. The writer
// puts the commas; the caller keeps Begin and End paired.
//
//   JsonWriter w(&out);
//   w.BeginObject(); w.Key("index"); w.Int(0); w.EndObject();
//
// Strings are repaired to valid UTF-8. Not thread-safe; one writer per buffer at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vivace::server {

class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }

  void Key(std::string_view name);
  void String(std::string_view text);
  void Int(int64_t value);
  void Float(float value);  // finite; the shortest form that reads back the same
  void Bool(bool value) { Literal(value ? "true" : "false"); }
  void Null() { Literal("null"); }
  // Already JSON: a whole value, or members written earlier without braces.
  void Literal(std::string_view json);

  void KeyString(std::string_view name, std::string_view text) { Key(name), String(text); }
  void KeyInt(std::string_view name, int64_t value) { Key(name), Int(value); }
  void KeyInts(std::string_view name, std::span<const int32_t> values);
  void KeyNull(std::string_view name) { Key(name), Null(); }

 private:
  void Comma() {
    if (need_comma_) out_->push_back(',');
    need_comma_ = true;
  }
  void Open(char bracket) {
    Comma();
    out_->push_back(bracket);
    need_comma_ = false;
  }
  void Close(char bracket) {
    out_->push_back(bracket);
    need_comma_ = true;
  }

  std::string* out_;
  bool need_comma_ = false;
};

}  // namespace vivace::server
