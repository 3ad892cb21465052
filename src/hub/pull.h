// Getting a model by name: the door of this folder.
//
//   VIVACE_ASSIGN(PulledModel got, Pull(config, {.name = *ParseModelName("org/name")}, {}));
//   LoadEngine(got.path);
//
// Blocks; any thread; several processes may pull the same at once. A pull that ends early, by an
// error or a signal, leaves nothing half done in sight, and the next one goes on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/hub_config.h"
#include "hub/model_name.h"

namespace vivace::hub {

struct PullRequest {
  ModelName name;
  std::string revision = "main";
};

struct PullHooks {
  // Bytes of all files that are there, and that will be; 0 while unknown. Often.
  std::function<void(uint64_t done, uint64_t total)> on_progress;
  // Asked often; true ends the pull with the reason interrupted.
  std::function<bool()> stop;
};

struct PulledModel {
  std::string path;  // a GGUF file, or the snapshot's folder
  std::string commit;
  uint64_t bytes = 0;       // of its files
  uint64_t downloaded = 0;  // of them, now
};

// Brings the files of a model that the cache lacks. Offline, what FindInCache says.
Result<PulledModel> Pull(const HubConfig& config, const PullRequest& request,
                         const PullHooks& hooks);

// The model as the cache has it at the revision last seen. Never touches the network. Reasons:
// not_cached, and those of ChooseFiles for what is there.
Result<PulledModel> FindInCache(const HubConfig& config, const PullRequest& request);

}  // namespace vivace::hub
