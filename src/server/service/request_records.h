// The requests under way and the last limits::kMaxTimelines that ended, by id. Loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/service/request_record.h"

namespace vivace::server {

class RequestRecords {
 public:
  // Makes the record of one under way, as it is at that moment.
  using Snapshot = std::function<RequestRecord()>;

  // `now` is called until End of the same id.
  void Begin(const std::string& id, Snapshot now) { live_[id] = std::move(now); }
  // The oldest goes if there is no room.
  void End(RequestRecord record);

  std::optional<RequestRecord> Find(std::string_view id) const;
  // Those under way (limits::kMaxTimelines at most), then the others, the last to end first.
  void ForEach(const std::function<void(const RequestRecord&)>& visit) const;
  size_t ended() const { return ended_.size(); }

 private:
  std::unordered_map<std::string, Snapshot> live_;
  std::deque<RequestRecord> ended_;  // the oldest first
};

}  // namespace vivace::server
