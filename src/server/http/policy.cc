#include "server/http/policy.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/limits.h"

namespace vivace::server {
namespace {

// Method, target and version with their spaces.
constexpr size_t kMaxRequestLineBytes = limits::kMaxMethodBytes + 1 + limits::kMaxTargetBytes + 9;
constexpr size_t kMaxLengthDigits = 15;

constexpr Rejection kBareCr = {400, "bare_cr", "The header holds a CR that is not followed by LF."};
constexpr Rejection kBareLf = {400, "bare_lf", "Header lines must end in CRLF, not in LF alone."};
constexpr Rejection kControlChar = {400, "control_character",
                                    "The header holds a control character. This port speaks plain "
                                    "HTTP/1.1."};
constexpr Rejection kTargetTooLong = {414, "target_too_long", "The request target is too long."};
constexpr Rejection kHeaderTooLarge = {431, "header_too_large",
                                       "The request header is larger than 16 KiB."};
constexpr Rejection kTooManyFields = {431, "too_many_header_fields",
                                      "The request has more than 100 header fields."};
constexpr Rejection kBadRequestLine = {400, "bad_request_line",
                                       "The request line is not `METHOD /path HTTP/1.1`."};
constexpr Rejection kBadVersion = {505, "http_version_not_supported",
                                   "Only HTTP/1.1 and HTTP/1.0 are spoken here."};
constexpr Rejection kBadMethod = {501, "method_not_implemented", "The method is not known."};
constexpr Rejection kBadTarget = {400, "bad_target",
                                  "The target must be a plain absolute path without empty or dot "
                                  "segments."};
constexpr Rejection kBadField = {400, "bad_header_field",
                                 "A header line is not `Name: value` with a plain name."};
constexpr Rejection kObsFold = {400, "folded_header", "Header lines must not be folded."};
constexpr Rejection kDuplicateField = {400, "duplicate_header",
                                       "A header field that may stand only once stands twice."};
constexpr Rejection kBadHost = {400, "bad_host", "HTTP/1.1 needs exactly one valid Host field."};
constexpr Rejection kTwoLengths = {400, "ambiguous_length",
                                   "Content-Length and Transfer-Encoding must not stand together."};
constexpr Rejection kBadLength = {400, "bad_content_length",
                                  "Content-Length must be a plain decimal number."};
constexpr Rejection kBadCoding = {501, "transfer_encoding_not_supported",
                                  "The only Transfer-Encoding taken is `chunked`."};
constexpr Rejection kCodingIn10 = {400, "transfer_encoding_in_http_1_0",
                                   "HTTP/1.0 has no Transfer-Encoding."};
constexpr Rejection kCompressed = {415, "content_encoding_not_supported",
                                   "Compressed request bodies are not taken."};
constexpr Rejection kBadExpect = {417, "expectation_failed",
                                  "The only expectation met is `100-continue`."};

// Sorted for binary search.
constexpr std::array<std::string_view, 8> kSingletons = {
    "authorization", "content-encoding",  "content-length", "content-type", "expect",
    "host",          "transfer-encoding", "x-api-key"};

constexpr std::array<bool, 256> CharSet(std::string_view extra) {
  std::array<bool, 256> set{};
  for (int c = '0'; c <= '9'; ++c) set[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) set[c] = set[c - 'a' + 'A'] = true;
  for (char c : extra) set[static_cast<unsigned char>(c)] = true;
  return set;
}

constexpr auto kTokenChars = CharSet("!#$%&'*+-.^_`|~");     // RFC 9110, 5.6.2
constexpr auto kHostChars = CharSet("-._~!$&'()*+,;=:[]%");  // RFC 3986, 3.2.2
constexpr auto kPathChars = CharSet("-._~!$&'()*+,;=:@/%");  // RFC 3986, 3.3
constexpr auto kQueryChars =
    CharSet("-._~!$&'()*+,;=:@/%?[]|^{}\"<>`");  // and what clients send raw

bool AllIn(const std::array<bool, 256>& set, std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [&set](char c) { return set[static_cast<unsigned char>(c)]; });
}

char LowerChar(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](char x, char y) { return LowerChar(x) == y; });
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Every '%' starts two hex digits, and none spells NUL.
bool EscapesAreValid(std::string_view text) {
  for (size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 3)) {
    if (i + 2 >= text.size()) return false;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return false;
  }
  return true;
}

// "." or "..", a dot perhaps spelt "%2e".
bool IsDotSegment(std::string_view segment) {
  size_t dots = 0;
  while (!segment.empty()) {
    const bool escaped = segment.size() >= 3 && EqualsIgnoringCase(segment.substr(0, 3), "%2e");
    if (!escaped && segment[0] != '.') return false;
    segment.remove_prefix(escaped ? 3 : 1);
    ++dots;
  }
  return dots == 1 || dots == 2;
}

bool IsPlainPath(std::string_view path) {
  if (path.empty() || path[0] != '/' || !AllIn(kPathChars, path) || !EscapesAreValid(path)) {
    return false;
  }
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (IsDotSegment(segment) || (segment.empty() && end < path.size())) return false;
    begin = end + 1;
  }
  return true;
}

std::optional<Rejection> ParseVersion(std::string_view version, ParsedHead& out) {
  if (version == "HTTP/1.1" || version == "HTTP/1.0") {
    out.http_1_0 = version.back() == '0';
    return std::nullopt;
  }
  const bool well_formed = version.size() == 8 && version.substr(0, 5) == "HTTP/" &&
                           IsDigit(version[5]) && version[6] == '.' && IsDigit(version[7]);
  return well_formed ? kBadVersion : kBadRequestLine;
}

std::optional<Rejection> ParseRequestLine(std::string_view line, ParsedHead& out) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return kBadRequestLine;
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  if (!IsToken(method)) return kBadRequestLine;
  if (auto bad = ParseVersion(line.substr(last + 1), out)) return bad;
  const bool upper = std::all_of(method.begin(), method.end(),
                                 [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
  if (!upper || method.size() > limits::kMaxMethodBytes) return kBadMethod;
  if (target.size() > limits::kMaxTargetBytes) return kTargetTooLong;

  const size_t question = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, question);
  const std::string_view query = target.substr(std::min(question + 1, target.size()));
  if (!IsPlainPath(path) || !AllIn(kQueryChars, query)) return kBadTarget;
  out.request.method = method;
  out.request.path = path;
  out.request.query = query;
  return std::nullopt;
}

// The fields that decide how the body ends. Values as sent: only spaces around them are forgiven,
// so that "\tchunked" is no coding of ours.
struct FramingFields {
  std::optional<std::string_view> length;
  std::optional<std::string_view> coding;
  std::optional<std::string_view> host;
};

std::optional<Rejection> CheckLength(std::string_view text, size_t max_body_bytes,
                                     ParsedHead& out) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), IsDigit) &&
                     (text.size() == 1 || text[0] != '0');
  if (!plain || text.size() > kMaxLengthDigits) return kBadLength;
  size_t length = 0;
  for (char c : text) length = length * 10 + static_cast<size_t>(c - '0');
  if (length > max_body_bytes) return BodyTooLarge(max_body_bytes);
  out.content_length = length;
  out.framing = length > 0 ? BodyFraming::kLength : BodyFraming::kNone;
  return std::nullopt;
}

std::optional<Rejection> CheckFraming(const FramingFields& fields, size_t max_body_bytes,
                                      ParsedHead& out) {
  if (!fields.host && !out.http_1_0) return kBadHost;
  if (fields.host && !AllIn(kHostChars, *fields.host)) return kBadHost;
  if (fields.coding && fields.length) return kTwoLengths;
  if (fields.coding) {
    if (out.http_1_0) return kCodingIn10;
    if (*fields.coding != "chunked") return kBadCoding;
    out.framing = BodyFraming::kChunked;
  }
  if (fields.length) return CheckLength(*fields.length, max_body_bytes, out);
  return std::nullopt;
}

bool HasListToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (EqualsIgnoringCase(Trim(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// What the request asks of the connection and of us.
std::optional<Rejection> CheckWishes(ParsedHead& out) {
  bool asks_close = false;
  bool asks_keep = false;
  for (const auto& [name, value] : out.request.headers) {
    if (name == "connection") {
      asks_close |= HasListToken(value, "close");
      asks_keep |= HasListToken(value, "keep-alive");
    } else if (name == "expect" && !out.http_1_0) {
      if (!EqualsIgnoringCase(value, "100-continue")) return kBadExpect;
      out.expect_continue = out.framing != BodyFraming::kNone;
    } else if (name == "content-encoding") {
      if (!value.empty() && !EqualsIgnoringCase(value, "identity")) return kCompressed;
    }
  }
  out.request.keep_alive = !asks_close && (!out.http_1_0 || asks_keep);
  return std::nullopt;
}

// Trims spaces only; see FramingFields.
std::string_view AfterColon(std::string_view line) {
  std::string_view value = line.substr(line.find(':') + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  return value;
}

bool HasField(const Headers& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [name](const auto& field) { return field.first == name; });
}

std::optional<Rejection> ParseFields(std::string_view lines, FramingFields& framing,
                                     ParsedHead& out) {
  while (!lines.empty()) {
    const size_t end = lines.find("\r\n");
    if (end == std::string_view::npos) return kBadField;
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    if (line.empty()) return lines.empty() ? std::nullopt : std::optional(kBadField);
    const auto field = SplitField(line);
    if (!field) return field.error();
    std::string name = ToLower(field->first);
    if (IsSingletonField(name) && HasField(out.request.headers, name)) return kDuplicateField;
    if (name == "content-length") framing.length = AfterColon(line);
    if (name == "transfer-encoding") framing.coding = AfterColon(line);
    if (name == "host") framing.host = AfterColon(line);
    out.request.headers.emplace_back(std::move(name), field->second);
    if (out.request.headers.size() > limits::kMaxHeaderFields) return kTooManyFields;
  }
  return kBadField;  // no empty line
}

}  // namespace

Rejection BodyTooLarge(size_t max_body_bytes) {
  return {413, "body_too_large", "The request body is too large.", max_body_bytes};
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerChar);
  return lower;
}

bool IsToken(std::string_view text) { return !text.empty() && AllIn(kTokenChars, text); }

bool IsSingletonField(std::string_view name) {
  return std::binary_search(kSingletons.begin(), kSingletons.end(), name);
}

tl::expected<std::pair<std::string_view, std::string_view>, Rejection> SplitField(
    std::string_view line) {
  if (!line.empty() && (line[0] == ' ' || line[0] == '\t')) return tl::unexpected(kObsFold);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return tl::unexpected(kBadField);
  const std::string_view name = line.substr(0, colon);
  if (!IsToken(name)) return tl::unexpected(kBadField);
  return std::pair(name, Trim(line.substr(colon + 1)));
}

HeadScanner::State HeadScanner::Reject(const Rejection& rejection) {
  rejection_ = rejection;
  return State::kRejected;
}

// At the LF of a line: done, refused or (nullopt) on to the next.
std::optional<HeadScanner::State> HeadScanner::EndLine() {
  const bool empty = position_ == line_begin_ + 1;
  line_begin_ = position_ + 1;
  if (empty && lines_ == 0) {
    if (begin_ != 0) return Reject(kBadRequestLine);
    begin_ = line_begin_;
    return std::nullopt;
  }
  if (empty) {
    ++position_;
    return State::kDone;
  }
  ++lines_;
  if (lines_ > 1 + limits::kMaxHeaderFields) return Reject(kTooManyFields);
  return std::nullopt;
}

HeadScanner::State HeadScanner::Scan(std::string_view input) {
  for (; position_ < input.size(); ++position_) {
    const auto c = static_cast<unsigned char>(input[position_]);
    if (after_cr_ && c != '\n') return Reject(kBareCr);
    if (lines_ == 0 && position_ - line_begin_ > kMaxRequestLineBytes) {
      return Reject(kTargetTooLong);
    }
    if (position_ - begin_ >= limits::kMaxHeaderBytes) return Reject(kHeaderTooLarge);
    if (c == '\n') {
      if (!after_cr_) return Reject(kBareLf);
      after_cr_ = false;
      if (auto state = EndLine()) return *state;
    } else if (c == '\r') {
      after_cr_ = true;
    } else if ((c < 0x20 && c != '\t') || c == 0x7F) {
      return Reject(kControlChar);
    }
  }
  return State::kMore;
}

tl::expected<ParsedHead, Rejection> ParseHead(std::string_view head, size_t max_body_bytes) {
  const size_t end = head.find("\r\n");
  if (end == std::string_view::npos) return tl::unexpected(kBadRequestLine);
  ParsedHead out;
  FramingFields framing;
  auto bad = ParseRequestLine(head.substr(0, end), out);
  if (!bad) bad = ParseFields(head.substr(end + 2), framing, out);
  if (!bad) bad = CheckFraming(framing, max_body_bytes, out);
  if (!bad) bad = CheckWishes(out);
  if (bad) return tl::unexpected(*bad);
  return out;
}

}  // namespace vivace::server
