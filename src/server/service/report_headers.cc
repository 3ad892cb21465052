#include "server/service/report_headers.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace vivace::server {
namespace {

// RFC 3986's unreserved characters, and the brackets of a path's indices.
bool StaysInHeader(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.~[]").find(c) != std::string_view::npos;
}

// Names are a client's: a list in a header carries some of them percent-encoded only.
std::string Encoded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (StaysInHeader(c)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out.empty() ? "\"\"" : out;  // an empty entry would be none
}

void Append(std::string_view name, std::string_view value, std::string* list) {
  if (!list->empty()) *list += ',';
  *list += Encoded(name);
  if (!value.empty()) *list += '=';
  *list += value;
}

void Add(std::string_view header, std::string value, Headers* headers) {
  if (!value.empty()) headers->emplace_back(header, std::move(value));
}

}  // namespace

void AddReportHeaders(const Reports& reports, Headers* headers) {
  std::string ignored, clamped, renamed;
  for (const std::string& name : reports.ignored) Append(name, "", &ignored);
  for (const auto& clamp : reports.clamped) {
    Append(clamp.name, std::to_string(clamp.given), &clamped);
  }
  for (const auto& rename : reports.renamed) Append(rename.alias, rename.name, &renamed);
  Add("x-vivace-ignored", std::move(ignored), headers);
  Add("x-vivace-clamped", std::move(clamped), headers);
  Add("x-vivace-renamed", std::move(renamed), headers);
  if (reports.truncated_tokens > 0) {
    Add("x-vivace-truncated-prompt-tokens", std::to_string(reports.truncated_tokens), headers);
  }
}

}  // namespace vivace::server
