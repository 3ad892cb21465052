#include "server/service/grammar_waits.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/error_response.h"
#include "server/openai/choice_output.h"
#include "server/service/engine_failure.h"
#include "server/service/request_log.h"

namespace vivace::server {
namespace {

// A timer lives no longer than this, however far the limit it stands for.
constexpr int64_t kMostTimerNs = 1'000 * kNanosPerMs;

int64_t NextLimit(const GrammarWaits::Wait& wait) {
  if (wait.deadline_ns == 0 || wait.queue_limit_ns == 0) {
    return std::max(wait.deadline_ns, wait.queue_limit_ns);
  }
  return std::min(wait.deadline_ns, wait.queue_limit_ns);
}

}  // namespace

GrammarWaits::WaitPtr GrammarWaits::Begin(Wait begun, const EarlyWishes& wishes) {
  auto wait = std::make_shared<Wait>(std::move(begun));
  const auto limit = [&](const std::optional<int64_t>& ms) {
    return ms ? wait->record.arrived_ns + *ms * kNanosPerMs : 0;
  };
  wait->since_ns = SteadyNanos();
  wait->deadline_ns = limit(wishes.deadline_ms);
  wait->queue_limit_ns = limit(wishes.max_queue_ms);
  wait->record.id = wait->identity.request_id;
  wait->record.created_s = wait->identity.created_s;
  waits_.push_back(wait);
  metrics_->awaiting_grammar->Set(static_cast<double>(waits_.size()));
  wait->record_key =
      records_->Begin(wait->record.id, [record = wait->record, since = wait->since_ns] {
        RequestRecord now = record;
        now.prepared_ns = SteadyNanos();
        now.grammar_ns = now.prepared_ns - since;
        return now;
      });
  Arm();
  return wait;
}

int64_t GrammarWaits::End(const WaitPtr& wait) {
  const int64_t took = SteadyNanos() - wait->since_ns;
  Remove(wait);
  return took;
}

void GrammarWaits::Close(const WaitPtr& wait, int status, std::string_view outcome) {
  if (std::exchange(wait->over, true)) return;
  RequestRecord record = wait->record;
  record.prepared_ns = record.ended_ns = SteadyNanos();
  record.grammar_ns = record.prepared_ns - wait->since_ns;
  record.status = status;
  record.outcome = outcome;
  records_->End(wait->record_key, std::move(record));
}

void GrammarWaits::HandOver(const WaitPtr& wait) {
  if (!std::exchange(wait->over, true)) records_->Forget(wait->record_key);
}

void GrammarWaits::Leave(const WaitPtr& wait) {
  if (!wait->open) return;
  Remove(wait);
  metrics_->clients_gone->Add();
  LogRequest({.id = wait->record.id,
              .path = wait->record.path,
              .status = kStatusClientGone,
              .started_ns = wait->record.arrived_ns});
  Close(wait, kStatusClientGone, "gone");
}

void GrammarWaits::FailAll(const Error& error) {
  for (const WaitPtr& wait : std::vector<WaitPtr>(waits_)) Refuse(wait, error);
}

// Once.
void GrammarWaits::Remove(const WaitPtr& wait) {
  if (!std::exchange(wait->open, false)) return;
  std::erase(waits_, wait);
  metrics_->awaiting_grammar->Set(static_cast<double>(waits_.size()));
  metrics_->grammar_time->Observe(static_cast<double>(SteadyNanos() - wait->since_ns) * 1e-9);
}

void GrammarWaits::Refuse(const WaitPtr& wait, const Error& error) {
  Remove(wait);
  std::exchange(wait->refuse, nullptr)(error);
  Close(wait, HttpStatus(error.code), OutcomeOfFailure(error, metrics_));
}

void GrammarWaits::Sweep() {
  const int64_t now = SteadyNanos();
  for (const WaitPtr& wait : std::vector<WaitPtr>(waits_)) {
    const int64_t limit = NextLimit(*wait);
    if (limit == 0 || limit > now) continue;
    Refuse(wait, EngineFailure(limit == wait->deadline_ns ? FinishReason::kDeadline
                                                          : FinishReason::kQueueTimeout));
  }
  Arm();
}

void GrammarWaits::Arm() {
  int64_t next = 0;
  for (const WaitPtr& wait : waits_) {
    const int64_t limit = NextLimit(*wait);
    if (limit != 0 && (next == 0 || limit < next)) next = limit;
  }
  if (next == 0) return;
  const int64_t now = SteadyNanos();
  next = std::min(next, now + kMostTimerNs);
  if (armed_ns_ != 0 && armed_ns_ <= next) return;
  armed_ns_ = next;
  // A millisecond later rather than one too early, which would be in vain.
  http_->After(static_cast<int>(std::max<int64_t>((next - now) / kNanosPerMs, 0) + 1),
               [this, next] {
                 if (armed_ns_ == next) armed_ns_ = 0;
                 Sweep();
               });
}

}  // namespace vivace::server
