// The requests of a Hugging Face hub that getting a model needs, with retries, redirects and a
// sentence a person can act on for each way they can be refused.
//
// Cost: a round trip each, and at most some 30 s of waiting between retries. One thread at a time.
// The token is sent to the endpoint's origin only, whatever a redirect says, and a redirect from
// https to http is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/http.h"
#include "hub/hub_config.h"

namespace vivace::hub {

struct RepoListing {
  std::string commit;
  std::vector<std::string> files;
};

struct FileFacts {
  std::string blob;  // the name of its content: a checksum, if KindOf says so
  std::optional<uint64_t> size;
  std::string if_range;  // strong ETag of the hub's own answer, quoted; empty: not to be used
};

class HubClient {
 public:
  HubClient(const HubConfig& config, std::function<bool()> stop);

  Result<RepoListing> List(const std::string& repo, const std::string& revision);
  Result<FileFacts> Facts(const std::string& repo, const std::string& commit,
                          const std::string& file);

  // One try at the file's bytes from `from` on. Where they begin, the hub decides: `sink` is told
  // with every piece, and it is `from` or 0.
  using RangeSink = std::function<Status(uint64_t begin, std::string_view piece)>;
  Status Get(const std::string& repo, const std::string& commit, const std::string& file,
             const FileFacts& facts, uint64_t from, const RangeSink& sink);

  // After a failure: waits and says that another try makes sense, and counts it. Retried are
  // failures of the way (unreachable, stalled, cut) and 408, 429 and 5xx (busy).
  bool WaitToRetry(const Error& error, int* tries);

 private:
  Result<HttpAnswer> Follow(HttpRequest request, bool stop_at_facts, const BodySink& sink);
  Status Check(const HttpAnswer& answer, const std::string& repo, std::string_view what);
  tl::unexpected<Error> Refused(const HttpAnswer& answer, const std::string& repo) const;
  template <typename Once>
  auto Retried(const Once& once) -> decltype(once());
  std::string FileUrl(const std::string& repo, const std::string& commit,
                      const std::string& file) const;

  const HubConfig config_;
  HttpClient http_;
  const std::string origin_;
  std::optional<int> retry_after_s_;  // as the last refusal asked
};

}  // namespace vivace::hub
