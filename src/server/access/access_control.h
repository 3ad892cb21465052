// Who may do what: API keys in front of routes. What a route needs is in the table of routes
// (router.h); this knows keys and requests, no paths.
//
// A key comes as `Authorization: Bearer KEY` or, as Anthropic's clients send it, `x-api-key: KEY`.
// Where no key is configured everything is open. An admin key opens everything; once there is one,
// what is the administrator's alone needs it. The key set is replaced as a whole when its files
// change. Loop thread only, but for LoadKeys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/access/api_keys.h"
#include "server/error_response.h"
#include "server/http/http.h"

namespace vivace::server {

// What a route asks of who calls it.
enum class AccessLevel : uint8_t {
  kOpen,     // probes: anybody
  kKey,      // an API key
  kMetrics,  // as kKey, unless metrics are public
  kAdmin,    // the admin key; an API key where there is no admin key
};

struct KeyOptions {
  std::vector<std::string> api_keys = {};
  std::string api_key_file = {};
  std::vector<std::string> admin_keys = {};
  std::string admin_key_file = {};
  bool public_metrics = false;
};

struct AccessKeys {
  KeySet users;
  KeySet admins;
  bool guarded = false;  // API keys were asked for; an empty file of them lets nobody in
};

// Flags and files together; the files are read anew each time. Any thread; blocks on the disk.
Result<std::shared_ptr<const AccessKeys>> LoadKeys(const KeyOptions& options);

class AccessControl {
 public:
  explicit AccessControl(bool public_metrics = false) : public_metrics_(public_metrics) {}

  void Use(std::shared_ptr<const AccessKeys> keys) { keys_ = std::move(keys); }

  // Who a request comes from.
  struct Caller {
    uint64_t id = 0;  // of its key; 0: it brought none that counts
    bool admin = false;
  };
  Caller WhoIs(const HttpRequest& request) const;

  // The refusal of a request that may not go on; nullopt: it may.
  std::optional<HttpServer::Refusal> Check(AccessLevel level, const HttpRequest& request,
                                           ErrorShape shape = ErrorShape::kOpenAi) const;

  // Whether `caller` may see what belongs to the caller `owner`.
  bool MaySee(const Caller& caller, uint64_t owner) const;

 private:
  bool Allowed(AccessLevel level, const Caller& caller) const;

  const bool public_metrics_;
  std::shared_ptr<const AccessKeys> keys_;  // null: everything is open
};

}  // namespace vivace::server
