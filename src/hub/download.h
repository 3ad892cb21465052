// One file of a repository into the cache: locked, resumed where the last try ended, its checksum
// right before it gets its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/cache.h"
#include "hub/hub_client.h"

namespace vivace::hub {

struct DownloadJob {
  std::string repo;
  std::string commit;
  std::string file;
  FileFacts facts;
};

// Bytes of a blob that are on the disk already: all, or of its .incomplete. 0 if none.
uint64_t BytesAtHand(const RepoCache& cache, const FileFacts& facts);

// Leaves the file as a link in its snapshot. `on_bytes` is told how many of its bytes are there,
// and may see the count fall. Waits for whoever is getting the same blob. Reasons: those of
// HubClient; checksum_mismatch, wrong_size, disk_full, io_error, interrupted. What had come stays
// for the next time, unless the checksum was wrong.
Status Download(const DownloadJob& job, const RepoCache& cache, HubClient* client,
                const std::function<bool()>& stop, const std::function<void(uint64_t)>& on_bytes);

}  // namespace vivace::hub
