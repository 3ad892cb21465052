#include "server/access/access_control.h"

#include <boost/algorithm/string/predicate.hpp>
#include <utility>

namespace vivace::server {
namespace {

constexpr std::string_view kBearer = "bearer ";

// The scheme's name has no case; empty: no bearer token.
std::string_view BearerToken(std::string_view header) {
  if (!boost::algorithm::istarts_with(header, kBearer)) return {};
  header.remove_prefix(kBearer.size());
  const size_t begin = header.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

HttpServer::Refusal NoAccess(int status, std::string message, std::string code, ErrorShape shape) {
  HttpServer::Refusal refusal = RefusalOf(
      status, {ErrorCode::kInvalidArgument, std::move(code), std::move(message), ""}, shape);
  if (status == 401) refusal.headers.emplace_back("www-authenticate", "Bearer");
  return refusal;
}

Result<KeySet> ReadKeys(std::vector<std::string> keys, std::string_view flag,
                        const std::string& file, std::string_view file_flag) {
  for (const std::string& key : keys) VIVACE_RETURN_IF_ERROR(CheckKey(key, flag));
  if (!file.empty()) {
    VIVACE_ASSIGN(const std::vector<std::string> more, ReadKeyFile(file, file_flag));
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return KeySet(keys);
}

}  // namespace

Result<std::shared_ptr<const AccessKeys>> LoadKeys(const KeyOptions& options) {
  auto keys = std::make_shared<AccessKeys>();
  VIVACE_ASSIGN(keys->users,
                ReadKeys(options.api_keys, "api-key", options.api_key_file, "api-key-file"));
  VIVACE_ASSIGN(keys->admins, ReadKeys(options.admin_keys, "admin-api-key", options.admin_key_file,
                                       "admin-api-key-file"));
  keys->guarded = !keys->users.empty() || !options.api_key_file.empty();
  if (!options.admin_key_file.empty() && keys->admins.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_key_file", "admin-api-key-file",
                "--admin-api-key-file {} has no key: what is the administrator's would be open",
                options.admin_key_file);
  }
  return keys;
}

AccessControl::Caller AccessControl::WhoIs(const HttpRequest& request) const {
  Caller caller;
  if (keys_ == nullptr) return caller;
  for (const std::string_view key :
       {BearerToken(request.header("authorization")), request.header("x-api-key")}) {
    if (key.empty()) continue;
    // Both sets, always: how long it takes says nothing.
    const std::optional<uint64_t> user = keys_->users.Find(key);
    const std::optional<uint64_t> admin = keys_->admins.Find(key);
    if (user) caller.id = *user;
    if (admin) caller = {*admin, true};
  }
  return caller;
}

bool AccessControl::Allowed(AccessLevel level, const Caller& caller) const {
  if (keys_ == nullptr || level == AccessLevel::kOpen) return true;
  if (level == AccessLevel::kMetrics && public_metrics_) return true;
  if (caller.admin) return true;
  if (level == AccessLevel::kAdmin && !keys_->admins.empty()) return false;
  return !keys_->guarded || caller.id != 0;
}

std::optional<HttpServer::Refusal> AccessControl::Check(AccessLevel level,
                                                        const HttpRequest& request,
                                                        ErrorShape shape) const {
  const Caller caller = WhoIs(request);
  if (Allowed(level, caller)) return std::nullopt;
  if (caller.id != 0) {
    return NoAccess(403, "this needs the server's admin key; the API key sent is another",
                    "insufficient_permissions", shape);
  }
  const bool sent =
      !request.header("authorization").empty() || !request.header("x-api-key").empty();
  if (sent) {
    return NoAccess(401, "the API key sent is none of this server's", "invalid_api_key", shape);
  }
  return NoAccess(401,
                  "this server needs an API key: send the header Authorization: Bearer KEY, or "
                  "x-api-key: KEY",
                  "missing_api_key", shape);
}

bool AccessControl::MaySee(const Caller& caller, uint64_t owner) const {
  if (keys_ == nullptr || caller.admin) return true;
  return keys_->admins.empty() || (caller.id != 0 && caller.id == owner);
}

}  // namespace vivace::server
