#include "cli/environment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/limits.h"

namespace vivace::cli {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A relative path means nothing here (XDG says to ignore it).
fs::path AbsolutePathIn(const char* variable) {
  const fs::path path = Variable(variable);
  return path.is_absolute() ? path : fs::path();
}

fs::path UserCache() {
  if (const fs::path cache = AbsolutePathIn("XDG_CACHE_HOME"); !cache.empty()) return cache;
  const fs::path home = AbsolutePathIn("HOME");
  return home.empty() ? home : home / ".cache";
}

// Hugging Face's variables may be relative, or begin with ~.
fs::path PathIn(const char* variable) {
  const std::string value = Variable(variable);
  if (value == "~" || value.starts_with("~/")) return Variable("HOME") + value.substr(1);
  return value;
}

std::string Token(const fs::path& home) {
  std::string token = Variable("HF_TOKEN");
  if (token.empty()) {
    fs::path path = PathIn("HF_TOKEN_PATH");
    if (path.empty() && !home.empty()) path = home / "token";
    std::ifstream file(path, std::ios::binary);
    token.resize(limits::kHubTokenBytes);
    file.read(token.data(), static_cast<std::streamsize>(token.size()));
    token.resize(static_cast<size_t>(file.gcount()));
  }
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!token.empty() && is_blank(token.back())) token.pop_back();
  token.erase(token.begin(), std::find_if_not(token.begin(), token.end(), is_blank));
  const bool sane =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return sane && token.size() < limits::kHubTokenBytes ? token : "";
}

bool IsOn(std::string value) {
  for (char& c : value) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

}  // namespace

std::string UserCacheFolder() {
  const fs::path cache = UserCache();
  return cache.empty() ? "" : (cache / "vivace").string();
}

std::string ApiKeyOfEnvironment() {
  std::string key = Variable("VIVACE_API_KEY");
  return key.empty() ? Variable("VLLM_API_KEY") : key;
}

std::string AdminKeyOfEnvironment() { return Variable("VIVACE_ADMIN_API_KEY"); }

std::string OpenAiKeyOfEnvironment() { return Variable("OPENAI_API_KEY"); }

hub::HubConfig HubFromEnvironment() {
  hub::HubConfig config;
  fs::path home = PathIn("HF_HOME");
  if (home.empty()) home = UserCache().empty() ? fs::path() : UserCache() / "huggingface";
  fs::path cache = PathIn("HF_HUB_CACHE");
  if (cache.empty() && !home.empty()) cache = home / "hub";
  config.cache = cache.string();
  config.token = Token(home);
  config.offline = IsOn(Variable("HF_HUB_OFFLINE"));
  std::string endpoint = Variable("HF_ENDPOINT");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!endpoint.empty()) config.endpoint = std::move(endpoint);
  return config;
}

}  // namespace vivace::cli
