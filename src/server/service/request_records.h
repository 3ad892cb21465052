// The requests under way and the last limits::kMaxTimelines that ended. Clients choose ids, so
// several may share one. Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/service/request_record.h"

namespace vivace::server {

class RequestRecords {
 public:
  // Makes the record of one under way, as it is at that moment.
  using Snapshot = std::function<RequestRecord()>;

  // Of one under way, never 0.
  using Key = uint64_t;

  // `now` is called until End or Forget.
  Key Begin(std::string id, Snapshot now);
  // It leaves no record, for another one stands for the same request.
  void Forget(Key key) { live_.erase(key); }
  // The oldest record goes if there is no room. A key of 0 was never begun.
  void End(Key key, RequestRecord record);

  // The newest of this id among those that `may_see` lets through; those under way come first.
  // Cost: a look at each.
  using MaySee = std::function<bool(const RequestRecord&)>;
  std::optional<RequestRecord> Find(std::string_view id, const MaySee& may_see) const;
  // Those under way (limits::kMaxTimelines at most), then the others, the last to end first.
  void ForEach(const std::function<void(const RequestRecord&)>& visit) const;
  size_t ended() const { return ended_.size(); }

 private:
  struct Live {
    std::string id;
    Snapshot now;
  };
  std::map<Key, Live> live_;  // in the order of their coming
  Key last_key_ = 0;
  std::deque<RequestRecord> ended_;  // the oldest first
};

}  // namespace vivace::server
