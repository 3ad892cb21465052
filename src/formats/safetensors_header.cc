#include "formats/safetensors_header.h"

#include <boost/json/basic_parser_impl.hpp>
#include <optional>

#include "base/limits.h"

namespace vivace::formats {
namespace {

namespace json = boost::json;

// Receives the parser's events and keeps a stack of what the open JSON values stand for. The first
// thing wrong is kept and the rest of the text only checked for syntax, so that a syntax error or
// too deep nesting anywhere is reported as that.
class HeaderHandler {
 public:
  // The parser's own limits; ours are on the text as a whole.
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;

  using Ec = json::error_code;
  using Text = json::string_view;

  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec&) { return Begin(/*object=*/true); }
  bool on_object_end(size_t, Ec&) { return End(); }
  bool on_array_begin(Ec&) { return Begin(/*object=*/false); }
  bool on_array_end(size_t, Ec&) { return End(); }
  bool on_key_part(Text part, size_t, Ec&) { return Append(part); }
  bool on_key(Text part, size_t, Ec&) {
    Append(part);
    key_.swap(text_);
    text_.clear();
    return true;
  }
  bool on_string_part(Text part, size_t, Ec&) { return Append(part); }
  bool on_string(Text part, size_t, Ec&) {
    Append(part);
    String();
    text_.clear();
    return true;
  }
  bool on_number_part(Text, Ec&) { return true; }
  bool on_int64(int64_t value, Text, Ec&) {
    return Number(value < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(value)));
  }
  bool on_uint64(uint64_t value, Text, Ec&) { return Number(value); }
  bool on_double(double, Text, Ec&) { return Number(std::nullopt); }  // also integers from 2^64
  bool on_bool(bool, Ec&) { return Misplaced(); }
  bool on_null(Ec&) { return Misplaced(); }
  bool on_comment_part(Text, Ec&) { return true; }
  bool on_comment(Text, Ec&) { return true; }

  std::optional<Error> error;
  SafetensorsHeader header;

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets, kIgnored };
  enum Field { kDtype = 1, kShapeField = 2, kOffsetsField = 4 };

  bool Append(Text part) {
    text_.append(part.data(), part.size());
    return true;
  }

  Place here() const { return stack_.back(); }

  bool Wrong(std::string_view slug, std::string_view field, std::string_view what) {
    if (!error) {
      error =
          Error{ErrorCode::kCorruptData, std::string(slug), std::string(what), std::string(field)};
    }
    return true;
  }

  // A value of a kind that does not belong where it stands.
  bool Misplaced() {
    switch (here()) {
      case Place::kOutside:
        return Wrong("bad_json", "", "the header is not a JSON object");
      case Place::kTop:
        return Wrong("bad_json", key_, "is not a JSON object");
      case Place::kMetadata:
        return Wrong("bad_metadata", key_, "metadata values must be strings");
      case Place::kShape:
        return WrongShape();
      case Place::kOffsets:
        return WrongOffsets();
      case Place::kTensor:
        if (key_ == "dtype") return Wrong("bad_dtype", entry_.name, "dtype is not a string");
        if (key_ == "shape") return WrongShape();
        if (key_ == "data_offsets") return WrongOffsets();
        return true;  // the format may grow fields
      case Place::kIgnored:
        return true;
    }
    return true;
  }

  bool WrongShape() {
    return Wrong("bad_shape", entry_.name, "shape is not a list of sizes (whole, not negative)");
  }
  bool WrongOffsets() {
    return Wrong("bad_offsets", entry_.name,
                 "data_offsets is not a pair of offsets (whole, not negative, below 2^64)");
  }

  bool Begin(bool object) {
    Place child = Place::kIgnored;
    const Place place = here();
    if (object && place == Place::kOutside) {
      child = Place::kTop;
    } else if (object && place == Place::kTop) {
      child = key_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
      if (child == Place::kTensor) BeginTensor();
      if (child == Place::kMetadata && seen_metadata_) {
        Wrong("duplicate_key", key_, "is in the header twice");
      }
      seen_metadata_ |= child == Place::kMetadata;
    } else if (!object && place == Place::kTensor && key_ == "shape") {
      Mark(kShapeField);
      child = Place::kShape;
    } else if (!object && place == Place::kTensor && key_ == "data_offsets") {
      Mark(kOffsetsField);
      child = Place::kOffsets;
    } else {
      Misplaced();
    }
    stack_.push_back(child);
    return true;
  }

  bool End() {
    if (here() == Place::kTensor) EndTensor();
    stack_.pop_back();
    return true;
  }

  void BeginTensor() {
    entry_ = {};
    entry_.name = key_;
    offsets_.clear();
    seen_ = 0;
  }

  void EndTensor() {
    if (!(seen_ & kDtype)) Wrong("bad_dtype", entry_.name, "has no dtype");
    if (!(seen_ & kShapeField)) Wrong("bad_shape", entry_.name, "has no shape");
    if (offsets_.size() != 2) WrongOffsets();
    if (error) return;
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header.entries.push_back(std::move(entry_));
  }

  void Mark(Field field) {
    if (seen_ & field) Wrong("duplicate_key", entry_.name, "has a field twice: " + key_);
    seen_ |= field;
  }

  void String() {
    if (here() == Place::kTensor && key_ == "dtype") {
      Mark(kDtype);
      entry_.dtype = text_;
    } else if (here() == Place::kMetadata) {
      header.metadata.emplace_back(key_, text_);
    } else {
      Misplaced();
    }
  }

  bool Number(std::optional<uint64_t> value) {
    if (value && here() == Place::kShape) {
      if (entry_.shape.size() == limits::kMaxSafetensorsRank) {
        return Wrong("dims_limit", entry_.name,
                     fmt::format("has over {} dimensions", limits::kMaxSafetensorsRank));
      }
      entry_.shape.push_back(*value);
      return true;
    }
    if (value && here() == Place::kOffsets && offsets_.size() < 2) {
      offsets_.push_back(*value);
      return true;
    }
    return Misplaced();
  }

  std::vector<Place> stack_ = {Place::kOutside};
  std::string key_;   // of the value being read
  std::string text_;  // the key or string being read
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  unsigned seen_ = 0;  // Fields of entry_
  bool seen_metadata_ = false;
};

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text) {
  if (text.empty() || text.front() != '{') {
    return Fail(ErrorCode::kCorruptData, "bad_json", "", "the header does not start with '{{'");
  }
  json::parse_options options;
  options.max_depth = limits::kMaxSafetensorsDepth;
  json::basic_parser<HeaderHandler> parser(options);
  json::error_code ec;
  const size_t parsed = parser.write_some(/*more=*/false, text.data(), text.size(), ec);
  if (!ec && parsed < text.size()) ec = json::error::extra_data;
  if (ec == json::error::too_deep) {
    return Fail(ErrorCode::kCorruptData, "nesting_limit", "",
                "the header nests over {} JSON values", limits::kMaxSafetensorsDepth);
  }
  if (ec) {
    return Fail(ErrorCode::kCorruptData, "bad_json", "", "the header is not JSON, at byte {}: {}",
                parsed, ec.message());
  }
  HeaderHandler& handler = parser.handler();
  if (handler.error) return tl::unexpected<Error>(std::move(*handler.error));
  return std::move(handler.header);
}

}  // namespace vivace::formats
