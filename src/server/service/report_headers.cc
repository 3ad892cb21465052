#include "server/service/report_headers.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace vivace::server {
namespace {

// A header may carry only plain names; the others are in the body's list.
bool FitsHeader(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

void Append(std::string_view name, std::string_view value, std::string* list) {
  if (!FitsHeader(name)) return;
  if (!list->empty()) *list += ',';
  *list += name;
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
