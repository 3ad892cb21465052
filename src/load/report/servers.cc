#include "load/report/servers.h"

#include <algorithm>
#include <map>

#include "load/report/text.h"

namespace vivace::load {
namespace {

constexpr size_t kShortServer = 28, kShortOwnLabel = 40;  // characters

std::string ServerKey(const RunResult& run) {
  return run.base_url + "\n" + run.endpoint + "\n" + run.model;
}

std::string AddressOf(const RunResult& run) {
  const size_t scheme = run.base_url.find("://");
  return scheme == run.base_url.npos ? run.base_url : run.base_url.substr(scheme + 3);
}

std::string OwnerOf(const RunResult& run) {
  const auto owner = run.environment.find("server_model_owner");
  return owner == run.environment.end() ? std::string() : owner->second;
}

std::string LabelAt(const std::string& server, const std::string& label) {
  return server + (server.empty() || label.empty() ? "" : " ") + label;
}

}  // namespace

void TellServersApart(std::vector<RunResult>* runs) {
  std::map<std::string, std::string> names;  // by key
  for (const RunResult& run : *runs) {
    std::string& name = names[ServerKey(run)];
    if (name.empty()) name = OwnerOf(run).empty() ? AddressOf(run) : OwnerOf(run);
  }
  if (names.size() < 2) return;
  std::map<std::string, int> uses;
  for (const auto& [key, name] : names) ++uses[name];
  for (RunResult& run : *runs) {
    run.server_name = names[ServerKey(run)];
    if (uses[run.server_name] < 2) continue;
    run.server_name = AddressOf(run);
    if (run.server_name != OwnerOf(run) && !OwnerOf(run).empty())
      run.server_name = OwnerOf(run) + " at " + run.server_name;
  }
}

std::vector<ServerRuns> ByServer(const std::vector<RunResult>& runs) {
  std::vector<ServerRuns> servers;
  for (size_t i = 0; i < runs.size(); ++i) {
    auto found = std::ranges::find(servers, runs[i].server_name, &ServerRuns::name);
    if (found == servers.end()) {
      servers.push_back({.name = runs[i].server_name, .short_name = {}, .runs = {}});
      found = servers.end() - 1;
    }
    found->runs.push_back(i);
  }
  std::vector<std::string> names;
  for (const ServerRuns& server : servers) names.push_back(server.name);
  names = CutApart(names, kShortServer);
  for (size_t i = 0; i < servers.size(); ++i) servers[i].short_name = std::move(names[i]);
  return servers;
}

std::string FullLabel(const RunResult& run) { return LabelAt(run.server_name, run.label); }

std::vector<std::string> ShortLabels(const std::vector<RunResult>& runs) {
  std::vector<std::string> labels;
  for (const RunResult& run : runs) labels.push_back(run.label);
  labels = CutApart(labels, kShortOwnLabel);
  for (const ServerRuns& server : ByServer(runs)) {
    for (const size_t i : server.runs) labels[i] = LabelAt(server.short_name, labels[i]);
  }
  return labels;
}

}  // namespace vivace::load
