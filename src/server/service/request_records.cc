#include "server/service/request_records.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace vivace::server {

void RequestRecords::End(RequestRecord record) {
  live_.erase(record.id);
  if (ended_.size() >= limits::kMaxTimelines) ended_.pop_front();
  ended_.push_back(std::move(record));
}

std::optional<RequestRecord> RequestRecords::Find(std::string_view id) const {
  if (const auto live = live_.find(std::string(id)); live != live_.end()) return live->second();
  const auto found = std::find_if(ended_.begin(), ended_.end(),
                                  [id](const RequestRecord& record) { return record.id == id; });
  return found == ended_.end() ? std::nullopt : std::optional(*found);
}

void RequestRecords::ForEach(const std::function<void(const RequestRecord&)>& visit) const {
  size_t left = limits::kMaxTimelines;
  for (const auto& [id, now] : live_) {
    if (left-- == 0) break;
    visit(now());
  }
  for (auto record = ended_.rbegin(); record != ended_.rend(); ++record) visit(*record);
}

}  // namespace vivace::server
