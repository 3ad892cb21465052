#include "load/client/answer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/limits.h"
#include "base/trim.h"

namespace vivace::load {
namespace {

bool StartsWithNoCase(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin(), [](char l, char c) {
    return l == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  });
}

// "HTTP/1.1 200 OK": 200; 0 for what is no status line.
int32_t StatusOf(std::string_view line) {
  if (!line.starts_with("HTTP/")) return 0;
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return 0;
  int32_t status = 0;
  std::from_chars(line.data() + space + 1, line.data() + line.size(), status);
  return status;
}

// The milliseconds of `queue` in a Server-Timing header (W3C): "prepare;dur=1.2, queue;dur=0.5".
double QueueOf(std::string_view value) {
  while (!value.empty()) {
    const std::string_view metric = value.substr(0, value.find(','));
    value.remove_prefix(std::min(metric.size() + 1, value.size()));
    const size_t begin = metric.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    if (metric.substr(begin, metric.find_first_of("; \t\r\n", begin) - begin) != "queue") continue;
    const size_t at = metric.find("dur=");
    double ms = -1;
    if (at != std::string_view::npos) {
      std::from_chars(metric.data() + at + 4, metric.data() + metric.size(), ms);
    }
    return ms;
  }
  return -1;
}

// Of a usage: what is above was not counted by a server.
constexpr int64_t kMostTokens = int64_t{1} << 30;

}  // namespace

void AnswerReader::Begin(RequestRecord* record, const Options& options) {
  record_ = record;
  options_ = options;
  record_->cached_tokens = -1;
  events_.Reset();
  text_.clear();
  raw_.clear();
  location_.clear();
  body_bytes_ = 0;
  last_count_ = 0;
  counts_each_ = true;
  saw_event_ = done_ = has_error_ = false;
  error_.clear();
  garbage_.clear();
}

void AnswerReader::OnHeader(std::string_view line) {
  if (const int32_t status = StatusOf(line); status != 0) {
    record_->status = status;
  } else if (StartsWithNoCase(line, "server-timing:")) {
    record_->server_queue_ms = QueueOf(line.substr(line.find(':') + 1));
  } else if (StartsWithNoCase(line, "location:")) {
    location_ = Trimmed(line.substr(line.find(':') + 1));
  }
}

bool AnswerReader::OnBody(std::string_view bytes, int64_t now_ns) {
  body_bytes_ += bytes.size();
  if (record_->status != 200) {
    raw_ += bytes.substr(
        0, limits::kMaxLoadErrorBytes - std::min(raw_.size(), limits::kMaxLoadErrorBytes));
    return raw_.size() < limits::kMaxLoadErrorBytes;
  }
  if (!saw_event_ && raw_.size() < limits::kMaxLoadReasonBytes) {
    raw_ += bytes.substr(0, limits::kMaxLoadReasonBytes);
  }
  bool go_on = true;
  const bool sound = events_.Push(bytes, [&](std::string_view event) {
    if (go_on) go_on = OnEvent(event, now_ns);
  });
  if (!go_on) return false;
  if (!sound || body_bytes_ > limits::kMaxLoadAnswerBytes) {
    garbage_ = sound ? "the answer has no end: it is larger than any answer is"
                     : "the answer is one line without an end, not a stream of events";
    return false;
  }
  return true;
}

bool AnswerReader::OnEvent(std::string_view event, int64_t now_ns) {
  if (done_) return true;
  saw_event_ = true;
  if (event == "[DONE]") {
    done_ = true;
    return true;
  }
  Chunk chunk;
  if (!ParseChunk(event, &chunk, options_.keep_text ? &text_ : nullptr)) {
    garbage_ = "an event of the stream is not a JSON object";
    return false;
  }
  if (chunk.is_error) {
    has_error_ = true;
    error_ = Quotable(chunk.error);
    return false;
  }
  if (chunk.bad_count) {
    garbage_ = "its usage has a count that is no number of tokens";
    return false;
  }
  for (const int64_t count : {chunk.prompt_tokens, chunk.completion_tokens, chunk.cached_tokens}) {
    if (count <= kMostTokens) continue;
    garbage_ = fmt::format("its usage counts {} tokens, more than any model takes", count);
    return false;
  }
  if (chunk.has_text || (chunk.has_choices && chunk.completion_tokens > last_count_)) {
    OnContent(chunk, now_ns);
  } else if (chunk.has_choices &&
             static_cast<int64_t>(record_->empty_ns.size()) < options_.max_events) {
    record_->empty_ns.push_back(now_ns);
  }
  if (!chunk.finish_reason.empty()) record_->finish_reason = Quotable(chunk.finish_reason);
  if (chunk.completion_tokens >= 0) {
    record_->counted = true;
    record_->output_tokens = static_cast<int32_t>(chunk.completion_tokens);
    last_count_ = chunk.completion_tokens;
  }
  if (chunk.prompt_tokens >= 0) record_->prompt_tokens = static_cast<int32_t>(chunk.prompt_tokens);
  if (chunk.cached_tokens >= 0) record_->cached_tokens = static_cast<int32_t>(chunk.cached_tokens);
  if (static_cast<int64_t>(record_->chunk_ns.size()) > options_.max_events) {
    garbage_ = "the stream does not end: it brings far more than max_tokens";
    return false;
  }
  return true;
}

void AnswerReader::OnContent(const Chunk& chunk, int64_t now_ns) {
  if (record_->first_ns == 0) record_->first_ns = now_ns;
  record_->last_ns = now_ns;
  record_->chunk_ns.push_back(now_ns);
  int64_t tokens = 1;
  if (chunk.completion_tokens < 0) {
    counts_each_ = false;
  } else {
    tokens = std::max<int64_t>(chunk.completion_tokens - last_count_, 0);
  }
  if (counts_each_) record_->chunk_tokens.push_back(static_cast<int32_t>(tokens));
  if (options_.live_tokens != nullptr) *options_.live_tokens += tokens;
}

void AnswerReader::Set(Outcome outcome, std::string reason) {
  record_->outcome = outcome;
  record_->reason = std::move(reason);
}

void AnswerReader::End(const Ending& ending, int64_t now_ns) {
  record_->ended_ns = now_ns;
  // The last line of a body may lack its end.
  if (record_->status == 200 && !done_ && events_.rest() == "data: [DONE]") {
    saw_event_ = done_ = true;
  }
  Judge(ending);
  SettleCounts();
}

void AnswerReader::Judge(const Ending& ending) {
  const bool content = record_->first_ns != 0;
  const int32_t status = record_->status;
  if (done_ && !has_error_ && garbage_.empty()) {
    if (content || record_->counted) return Set(Outcome::kCompleted, "");
    return Set(Outcome::kGarbage, "the stream ended without any text and without usage");
  }
  if (ending.has_outcome) return Set(ending.outcome, std::string(ending.reason));
  if (status != 200 && status >= 300) {
    const std::string message = status < 400 && !location_.empty()
                                    ? "it redirects to " + Quotable(location_)
                                    : ErrorMessageOf(raw_);
    return Set(Outcome::kRefused, message.empty() ? fmt::format("HTTP {}", status)
                                                  : fmt::format("HTTP {}: {}", status, message));
  }
  if (!garbage_.empty()) return Set(Outcome::kGarbage, garbage_);
  if (has_error_) {
    return Set(content ? Outcome::kCut : Outcome::kRefused,
               fmt::format("the server reported an error: {}",
                           error_.empty() ? "no reason given" : error_));
  }
  if (!ending.clean) {
    return Set(content ? Outcome::kCut : Outcome::kConnection, std::string(ending.transport));
  }
  if (saw_event_ && !record_->finish_reason.empty()) return Set(Outcome::kCompleted, "");
  if (content) return Set(Outcome::kCut, "the stream ended before a finish_reason and [DONE]");
  if (saw_event_) return Set(Outcome::kGarbage, "the stream ended without any text");
  Set(Outcome::kGarbage,
      raw_.empty() ? "the answer is empty"
                   : "the answer is not a stream of events; it begins: " + Quotable(raw_));
}

// Without usage the counts are the dataset's and the events'.
void AnswerReader::SettleCounts() {
  if (!counts_each_) record_->chunk_tokens.clear();
  if (record_->counted) return;
  record_->chunk_tokens.clear();
  record_->prompt_tokens = record_->wanted_prompt_tokens;
  record_->output_tokens = static_cast<int32_t>(record_->chunk_ns.size());
}

}  // namespace vivace::load
