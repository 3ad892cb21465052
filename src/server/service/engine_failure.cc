#include "server/service/engine_failure.h"

#include "server/openai/choice_output.h"

namespace vivace::server {

Error EngineFailure(FinishReason reason, const TokenConstraint* constraint) {
  if (reason == FinishReason::kDeadline) {
    return {ErrorCode::kDeadlineExceeded, "deadline_exceeded",
            "the request's deadline passed before its answer was complete", ""};
  }
  if (reason == FinishReason::kQueueTimeout) {
    return {ErrorCode::kResourceExhausted, "queue_timeout",
            "the request waited in the queue for as long as it may; try again later", ""};
  }
  if (reason == FinishReason::kError && constraint != nullptr && constraint->too_costly()) {
    return {ErrorCode::kInvalidArgument, "grammar_too_costly",
            "the grammar can be followed in so many ways at once that a token took too long; write "
            "it with fewer repeats within repeats",
            ""};
  }
  if (reason == FinishReason::kError) {
    return {ErrorCode::kInternal, "non_finite_logits",
            "the model's output was not finite; the request was ended", ""};
  }
  return {ErrorCode::kInternal, "aborted", "the request was ended by the server", ""};
}

std::string_view OutcomeOfFailure(const Error& error, ServerMetrics* metrics) {
  if (error.reason == "queue_timeout") metrics->queue_limits_passed->Add();
  if (error.code != ErrorCode::kDeadlineExceeded) return "error";
  metrics->deadlines_passed->Add();
  return kDeadlineReason;
}

}  // namespace vivace::server
