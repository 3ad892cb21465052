#include "cli/config_file.h"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "base/limits.h"

namespace vivace::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMostShown = 80;  // characters of a value in an error
constexpr size_t kMaxDepth = 32;

template <typename... Args>
tl::unexpected<Error> Refuse(const std::string& path, const std::string& field,
                             fmt::format_string<Args...> format, Args&&... args) {
  return Fail(ErrorCode::kInvalidArgument, "bad_value", field, "{}: {}", path,
              fmt::format(format, std::forward<Args>(args)...));
}

Result<std::string> ReadText(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Fail(ErrorCode::kNotFound, "no_config_file", "config",
                "--config is '{}', which is no file; give a JSON file of flags", path);
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(limits::kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file) {
    return Fail(ErrorCode::kIo, "io_error", "config", "{}: cannot be read", path);
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > limits::kMaxConfigBytes) {
    return Refuse(path, "config", "is larger than {} bytes; is it a file of flags?",
                  limits::kMaxConfigBytes);
  }
  return text;
}

std::string Shown(const json::value& value) {
  std::string text = json::serialize(value);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return text;
}

// A number as its flag would read it.
bool AddWord(const json::value& value, std::vector<std::string>* words) {
  if (value.is_string()) {
    words->emplace_back(value.get_string());
  } else if (value.is_int64()) {
    words->push_back(fmt::to_string(value.get_int64()));
  } else if (value.is_uint64()) {
    words->push_back(fmt::to_string(value.get_uint64()));
  } else if (value.is_double()) {
    words->push_back(fmt::format("{}", value.get_double()));
  } else {
    return false;
  }
  return true;
}

Result<ConfigEntry> EntryOf(const std::string& path, std::string_view key,
                            const json::value& value) {
  ConfigEntry entry{.key = std::string(key), .name = std::string(key), .shown = Shown(value)};
  std::ranges::replace(entry.name, '_', '-');
  if (value.is_bool()) {
    entry.is_switch = true;
    entry.words = {value.get_bool() ? "true" : "false"};
    return entry;
  }
  bool good = true;
  if (const json::array* list = value.if_array()) {
    for (const json::value& item : *list) good = good && AddWord(item, &entry.words);
  } else {
    good = AddWord(value, &entry.words);
  }
  if (!good) {
    return Refuse(path, entry.key,
                  "\"{}\" is {}; give a string, a number, true or false, or a list of them",
                  entry.key, entry.shown);
  }
  return entry;
}

}  // namespace

Result<ConfigFile> ReadConfigFile(const std::string& path) {
  VIVACE_ASSIGN(const std::string text, ReadText(path));
  boost::system::error_code error;
  const json::value value = json::parse(text, error, {}, {.max_depth = kMaxDepth});
  if (error) return Refuse(path, "config", "is no JSON: {}", error.message());
  if (!value.is_object()) {
    return Refuse(path, "config", "is no JSON object; write {{\"max-num-seqs\": 32, ...}}");
  }
  ConfigFile config{.path = path};
  for (const auto& [key, member] : value.get_object()) {
    if (key == "provenance") continue;
    if (key == "model") {
      if (!member.is_string() || member.get_string().empty()) {
        return Refuse(path, "model", "\"model\" is {}; give a path or a name on the hub",
                      Shown(member));
      }
      config.model = member.get_string();
      continue;
    }
    VIVACE_ASSIGN(ConfigEntry entry, EntryOf(path, key, member));
    for (const ConfigEntry& other : config.entries) {
      if (other.name != entry.name) continue;
      return Refuse(path, entry.key, "\"{}\" and \"{}\" are the same flag; give one", other.key,
                    entry.key);
    }
    config.entries.push_back(std::move(entry));
  }
  return config;
}

}  // namespace vivace::cli
