#include "server/json/strict_json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/utf8.h"

namespace vivace::server {
namespace {

using json::error_code;
using json::string_view;

constexpr size_t kMostNameBytes = 64;  // of a member's name in an error

// Builds the DOM as boost::json::parser does, and adds what that does not check: numbers that
// overflow to infinity, and how many members were written (to find doubles, which the DOM merges).
class DomBuilder {
 public:
  static constexpr size_t max_object_size = json::object::max_size();
  static constexpr size_t max_array_size = json::array::max_size();
  static constexpr size_t max_key_size = json::string::max_size();
  static constexpr size_t max_string_size = json::string::max_size();

  DomBuilder() { stack_.reset(); }

  json::value Release() { return stack_.release(); }
  size_t members() const { return members_; }
  bool overflow() const { return overflow_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(size_t n, error_code&) {
    members_ += n;
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t n, error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(string_view s, size_t, error_code&) {
    stack_.push_chars(s);
    return true;
  }
  bool on_key(string_view s, size_t, error_code&) {
    stack_.push_key(s);
    return true;
  }
  bool on_string_part(string_view s, size_t, error_code&) {
    stack_.push_chars(s);
    return true;
  }
  bool on_string(string_view s, size_t, error_code&) {
    stack_.push_string(s);
    return true;
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t i, string_view, error_code&) {
    stack_.push_int64(i);
    return true;
  }
  bool on_uint64(uint64_t u, string_view, error_code&) {
    stack_.push_uint64(u);
    return true;
  }
  bool on_double(double d, string_view, error_code& ec) {
    if (!std::isfinite(d)) {
      overflow_ = true;
      ec = json::error::exponent_overflow;
      return false;
    }
    stack_.push_double(d);
    return true;
  }
  bool on_bool(bool b, error_code&) {
    stack_.push_bool(b);
    return true;
  }
  bool on_null(error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  json::value_stack stack_;
  size_t members_ = 0;
  bool overflow_ = false;
};

// Accepts everything and keeps nothing.
struct NullHandler {
  static constexpr size_t max_object_size = json::object::max_size();
  static constexpr size_t max_array_size = json::array::max_size();
  static constexpr size_t max_key_size = json::string::max_size();
  static constexpr size_t max_string_size = json::string::max_size();

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(size_t, error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t, error_code&) { return true; }
  bool on_key_part(string_view, size_t, error_code&) { return true; }
  bool on_key(string_view, size_t, error_code&) { return true; }
  bool on_string_part(string_view, size_t, error_code&) { return true; }
  bool on_string(string_view, size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t, string_view, error_code&) { return true; }
  bool on_uint64(uint64_t, string_view, error_code&) { return true; }
  bool on_double(double d, string_view, error_code& ec) {
    if (std::isfinite(d)) return true;
    ec = json::error::exponent_overflow;
    return false;
  }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

json::parse_options Options() {
  json::parse_options options;
  options.max_depth = limits::kJsonDepth;
  return options;
}

// First piece of `piece_size` bytes, from `begin` on, at which reading fails. The bytes before
// `begin` are fed at once. text.size() if it is the end that is missing.
size_t FailingPiece(std::string_view text, size_t begin, size_t piece_size) {
  json::basic_parser<NullHandler> parser(Options());
  error_code ec;
  parser.write_some(true, text.data(), begin, ec);
  for (size_t at = begin; at < text.size(); at += piece_size) {
    parser.write_some(true, text.data() + at, std::min(piece_size, text.size() - at), ec);
    if (ec) return at;
  }
  return text.size();
}

// The parser does not say where it failed: read again in pieces, then the failing piece by bytes.
size_t FailingByte(std::string_view text) {
  constexpr size_t kPieceBytes = 4096;
  const size_t piece = FailingPiece(text, 0, kPieceBytes);
  return piece == text.size() ? piece : FailingPiece(text, piece, 1);
}

// Members in the finished DOM. Recursion is bounded: the depth was checked while parsing.
size_t CountMembers(const json::value& value) {
  size_t count = 0;
  if (const auto* object = value.if_object()) {
    count += object->size();
    for (const auto& member : *object) count += CountMembers(member.value());
  } else if (const auto* array = value.if_array()) {
    for (const auto& item : *array) count += CountMembers(item);
  }
  return count;
}

// Stops at the first member that an object has already.
struct TwiceFinder : NullHandler {
  std::vector<std::set<std::string>> open;
  std::string key;
  bool found = false;

  bool on_object_begin(error_code&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(size_t, error_code&) {
    open.pop_back();
    return true;
  }
  bool on_key_part(string_view s, size_t, error_code&) {
    key.append(s);
    return true;
  }
  bool on_key(string_view s, size_t, error_code& ec) {
    key.append(s);
    found = !open.back().insert(key).second;
    if (found) {
      ec = json::error::syntax;
    } else {
      key.clear();
    }
    return !found;
  }
};

tl::unexpected<Error> Twice(std::string_view text, std::string_view what) {
  json::basic_parser<TwiceFinder> parser(Options());
  error_code ec;
  parser.write_some(false, text.data(), text.size(), ec);
  std::string name = utf8::Repair(std::string_view(parser.handler().key).substr(0, kMostNameBytes));
  return Fail(ErrorCode::kInvalidArgument, "invalid_json", name,
              "{} has an object with the member \"{}\" twice; give it once", what, name);
}

tl::unexpected<Error> Broken(std::string_view text, std::string_view what, size_t at,
                             std::string_view why) {
  const size_t invalid = utf8::FirstInvalid(text);
  if (invalid < text.size()) {
    return Fail(
        ErrorCode::kInvalidArgument, "invalid_json", "",
        "{} is not UTF-8: byte {} (0x{:02x}) is of no character; send JSON encoded as UTF-8", what,
        invalid, static_cast<unsigned char>(text[invalid]));
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_json", "",
                "{} begins with a byte order mark; leave it out", what);
  }
  if (at == text.size()) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_json", "",
                "{} is not valid JSON: it ends at byte {}, before the value is complete", what, at);
  }
  return Fail(ErrorCode::kInvalidArgument, "invalid_json", "",
              "{} is not valid JSON: {} at byte {}", what, why, at);
}

}  // namespace

Result<json::value> ParseStrictJson(std::string_view text, std::string_view what,
                                    MemberTwice twice) {
  if (text.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_json", "", "{} is empty; send a JSON object",
                what);
  }
  json::basic_parser<DomBuilder> parser(Options());
  error_code ec;
  const size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec == json::error::too_deep) {
    return Fail(ErrorCode::kInvalidArgument, "invalid_json", "",
                "{} is nested deeper than {} levels", what, limits::kJsonDepth);
  }
  if (ec) {
    return Broken(text, what, FailingByte(text),
                  parser.handler().overflow() ? "a number too large to represent" : ec.message());
  }
  for (size_t i = used; i < text.size(); ++i) {
    if (std::string_view(" \t\r\n").find(text[i]) == std::string_view::npos) {
      return Broken(text, what, i, "extra data after the value");
    }
  }
  const size_t members = parser.handler().members();
  json::value value = parser.handler().Release();
  if (twice == MemberTwice::kRefused && CountMembers(value) != members) return Twice(text, what);
  return value;
}

std::optional<int64_t> AsInteger(const json::value& value) {
  if (const auto* integer = value.if_int64()) return *integer;
  const double* number = value.if_double();
  const bool whole =
      number != nullptr && std::fabs(*number) < 0x1p63 && std::trunc(*number) == *number;
  return whole ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

std::string_view KindName(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
      return "an integer";
    case json::kind::double_:
      // An integer of so many digits is read as a double, and none of this size has a fraction.
      if (std::fabs(value.get_double()) >= 0x1p63) return "a number that is too large";
      return AsInteger(value) ? "an integer" : "a number with a fraction";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "a list";
    case json::kind::object:
      return "an object";
  }
  return "a value";
}

}  // namespace vivace::server
