// Small requests before and after a run, one at a time on one connection: models, version, tokens.
// Each waits for its answer; never used while something is measured.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "load/client/target.h"

namespace vivace::load {

class Fetcher {
 public:
  explicit Fetcher(const Target& target);

  struct Answer {
    int status = 0;
    std::string body;
    std::string redirect;  // where a redirect, which is not followed, leads to
  };
  // `body` null: GET. An error is that no answer came, and says so; a status is the caller's to
  // judge. At most limits::kMaxLoadFetchBytes, within `timeout_s`.
  Result<Answer> Do(std::string_view path, const std::string* body, double timeout_s = 30);

 private:
  const Target target_;
  const EasyHandle easy_;
  const HeaderList headers_;
};

}  // namespace vivace::load
