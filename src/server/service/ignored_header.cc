#include "server/service/ignored_header.h"

#include <algorithm>
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

}  // namespace

void AddIgnoredHeader(std::span<const std::string> names, Headers* headers) {
  std::string value;
  for (const std::string& name : names) {
    if (!FitsHeader(name)) continue;
    if (!value.empty()) value += ',';
    value += name;
  }
  if (!value.empty()) headers->emplace_back("x-vivace-ignored", std::move(value));
}

}  // namespace vivace::server
