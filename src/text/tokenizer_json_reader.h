// Reading the members of a tokenizer.json, checked; what its readers share.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_members.h"
#include "base/limits.h"
#include "base/result.h"
#include "formats/untrusted.h"
#include "text/tokenizer_data.h"

namespace vivace::tokenizer_json {

namespace json = boost::json;
using formats::Printable;

inline tl::unexpected<Error> WrongType(std::string_view field, std::string_view wanted) {
  return Fail(ErrorCode::kCorruptData, "wrong_type", std::string(field), "'{}' is not {}", field,
              wanted);
}

inline tl::unexpected<Error> Unsupported(std::string_view reason, std::string_view field,
                                         std::string_view name) {
  return Fail(ErrorCode::kUnsupported, std::string(reason), std::string(field),
              "{} '{}' is not supported", field, Printable(name));
}

// Null stands for absent everywhere in these files.
inline const json::value* Get(const json::object& object, std::string_view key) {
  return FindPresent(object, key);
}

inline Result<const json::object*> GetObject(const json::object& object, std::string_view key) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return WrongType(key, "an object");
  return &value->get_object();
}

inline Result<const json::array*> GetArray(const json::object& object, std::string_view key) {
  static const json::array empty;
  const json::value* value = Get(object, key);
  if (value == nullptr) return &empty;
  if (!value->is_array()) return WrongType(key, "an array");
  return &value->get_array();
}

inline Result<std::string_view> GetString(const json::object& object, std::string_view key) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return std::string_view();
  if (!value->is_string()) return WrongType(key, "a string");
  return std::string_view(value->get_string());
}

inline Result<bool> GetBool(const json::object& object, std::string_view key, bool fallback) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return WrongType(key, "true or false");
  return value->get_bool();
}

inline Result<TokenId> AsTokenId(const json::value& value, std::string_view token) {
  if (!value.is_number()) return WrongType("id", "a number");
  const int64_t* id = value.if_int64();
  if (id == nullptr || *id < 0 || *id >= limits::kMaxVocab) {
    return Fail(ErrorCode::kCorruptData, "token_id_range", "id",
                "the id of '{}' is not a whole number from 0 to {}", Printable(token),
                limits::kMaxVocab - 1);
  }
  return static_cast<TokenId>(*id);
}

// The steps of a part that is one step, a Sequence of steps (`list` names its member) or null.
Result<std::vector<const json::object*>> Steps(const json::object& root, std::string_view part,
                                               std::string_view list);

// The member "type" of a step.
inline Result<std::string_view> TypeOf(const json::object& step) { return GetString(step, "type"); }

// A whole number from 0 to `most`; `fallback` where it is absent.
inline Result<size_t> GetSize(const json::object& object, std::string_view key, size_t fallback,
                              size_t most) {
  const json::value* value = Get(object, key);
  if (value == nullptr) return fallback;
  const int64_t* number = value->if_int64();
  if (number == nullptr || *number < 0 || static_cast<uint64_t>(*number) > most) {
    return WrongType(key, "a whole number in range");
  }
  return static_cast<size_t>(*number);
}

// One character, written in UTF-8.
Result<std::string> GetCharacter(const json::object& object, std::string_view key,
                                 std::string_view fallback);

// {"String": ...} or {"Regex": ...} under "pattern"; a pattern with a scanner gets it if
// `scanner`.
Result<TextPattern> GetPattern(const json::object& step, bool scanner);

// A text that a step puts in; bounded.
Result<std::string> GetContent(const json::object& step, std::string_view key);

Result<std::vector<NormalizerStep>> ReadNormalizer(const json::object& root);
Result<std::vector<CutterStep>> ReadCutter(const json::object& root);
Result<std::vector<DecoderStep>> ReadDecoder(const json::object& root);
// bos, eos, add_bos, add_eos, prefix and suffix of `data`.
Status ReadPostProcessor(const json::object& root, TokenizerData* data);

}  // namespace vivace::tokenizer_json
