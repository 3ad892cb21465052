#include "server/service/request_records.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace vivace::server {

RequestRecords::Key RequestRecords::Begin(std::string id, Snapshot now) {
  live_[++last_key_] = {std::move(id), std::move(now)};
  return last_key_;
}

void RequestRecords::End(Key key, RequestRecord record) {
  live_.erase(key);
  if (ended_.size() >= limits::kMaxTimelines) ended_.pop_front();
  ended_.push_back(std::move(record));
}

std::optional<RequestRecord> RequestRecords::Find(std::string_view id,
                                                  const MaySee& may_see) const {
  for (auto live = live_.rbegin(); live != live_.rend(); ++live) {
    if (live->second.id != id) continue;
    RequestRecord record = live->second.now();
    if (may_see(record)) return record;
  }
  const auto found = std::find_if(ended_.rbegin(), ended_.rend(), [&](const RequestRecord& record) {
    return record.id == id && may_see(record);
  });
  return found == ended_.rend() ? std::nullopt : std::optional(*found);
}

void RequestRecords::ForEach(const std::function<void(const RequestRecord&)>& visit) const {
  size_t left = limits::kMaxTimelines;
  for (const auto& [key, live] : live_) {
    if (left-- == 0) break;
    visit(live.now());
  }
  for (auto record = ended_.rbegin(); record != ended_.rend(); ++record) visit(*record);
}

}  // namespace vivace::server
