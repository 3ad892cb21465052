#include "load/client/server_facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <boost/json.hpp>
#include <fstream>
#include <vector>

#include "base/cpu.h"
#include "load/client/chunk.h"

namespace vivace::load {
namespace {

namespace json = boost::json;

constexpr size_t kNamedModels = 8;
constexpr double kFactsTimeoutS = 10;

std::string ReasonOf(int status) {
  if (status == 401 || status == 403) return "no_access";
  if (status == 429 || (status >= 502 && status <= 504)) return "not_ready";
  return "server_error";
}

Result<json::object> GetObject(Fetcher* fetch, std::string_view path) {
  VIVACE_ASSIGN(const Fetcher::Answer answer, fetch->Do(path, nullptr, kFactsTimeoutS));
  if (!answer.redirect.empty()) {
    return Fail(ErrorCode::kNotFound, "redirected", "", "{} answered {}: it redirects to {}", path,
                answer.status, Quotable(answer.redirect));
  }
  if (answer.status != 200) {
    return Fail(ErrorCode::kNotFound, ReasonOf(answer.status), "", "{} answered {}: {}", path,
                answer.status, ErrorMessageOf(answer.body));
  }
  boost::system::error_code error;
  json::value value = json::parse(answer.body, error);
  if (error || !value.is_object()) {
    return Fail(ErrorCode::kCorruptData, "server_error", "", "{} did not answer a JSON object",
                path);
  }
  return std::move(value.get_object());
}

std::vector<json::object> Models(const json::object& list) {
  std::vector<json::object> models;
  const json::value* data = list.if_contains("data");
  if (data == nullptr || !data->is_array()) return models;
  for (const json::value& entry : data->get_array()) {
    if (entry.is_object()) models.push_back(entry.get_object());
  }
  return models;
}

std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return "";
  if (value->is_string()) return Quotable(value->get_string());
  return Quotable(json::serialize(*value));
}

// The value of the first line of a /proc file that begins with `name`.
std::string ProcLine(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return colon == std::string::npos || begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace

Result<std::string> OnlyModel(Fetcher* fetch) {
  auto list = GetObject(fetch, "/v1/models");
  if (!list) {
    Error error = std::move(list.error());
    if (error.reason == "no_answer" || error.reason == "not_ready") {
      error.message +=
          "; start the server, correct --base-url, or wait for it with --ready-check-timeout-sec "
          "600";
    } else if (error.reason == "redirected") {
      error.message += "; redirects are not followed: correct --base-url";
    } else if (error.reason == "no_access") {
      error.message += "; give the server's key with --api-key, --api-key-file or OPENAI_API_KEY";
    } else {
      error.message +=
          "; check --base-url, or give the model's name with --model if this server has no list of "
          "them";
    }
    return tl::unexpected<Error>(std::move(error));
  }
  std::vector<std::string> names;
  for (const json::object& model : Models(*list)) names.push_back(TextOf(model, "id"));
  if (names.size() == 1) return names[0];
  if (names.empty()) {
    return Fail(ErrorCode::kNotFound, "no_model", "model",
                "/v1/models lists no model; give its name with --model");
  }
  const size_t shown = std::min(names.size(), kNamedModels);
  return Fail(ErrorCode::kInvalidArgument, "several_models", "model",
              "the server has {} models; choose one with --model: {}{}", names.size(),
              fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "),
              shown < names.size() ? ", ..." : "");
}

std::map<std::string, std::string> ServerFacts(Fetcher* fetch, const std::string& model) {
  std::map<std::string, std::string> facts;
  const auto add = [&facts](const char* name, std::string value) {
    if (!value.empty()) facts[name] = std::move(value);
  };
  if (const auto version = GetObject(fetch, "/version")) {
    add("server_version", TextOf(*version, "version"));
  }
  if (const auto list = GetObject(fetch, "/v1/models")) {
    for (const json::object& entry : Models(*list)) {
      if (TextOf(entry, "id") != model) continue;
      add("server_model_owner", TextOf(entry, "owned_by"));
      add("server_max_model_len", TextOf(entry, "max_model_len"));
      break;
    }
  }
  return facts;
}

std::map<std::string, std::string> ClientFacts() {
  std::map<std::string, std::string> facts;
  facts["client"] = "vivace " VIVACE_VERSION;
  facts["client_cpus"] = fmt::to_string(UsableCpus());
  if (std::string cpu = ProcLine("/proc/cpuinfo", "model name"); !cpu.empty()) {
    facts["client_cpu"] = std::move(cpu);
  }
  if (std::string memory = ProcLine("/proc/meminfo", "MemTotal"); !memory.empty()) {
    facts["client_memory"] = std::move(memory);
  }
  utsname system{};
  if (uname(&system) == 0) {
    facts["client_kernel"] = fmt::format("{} {}", system.sysname, system.release);
  }
  return facts;
}

}  // namespace vivace::load
