#include "load/client/probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace vivace::load {
namespace {

constexpr int64_t kProbeLookNs = 50 * kNanosPerMs;
constexpr int64_t kPauseNs = kNanosPerSecond / 4;
constexpr int32_t kProbeTokens = 4;
constexpr int kStatusesOfLater[] = {429, 502, 503, 504};

bool IsSoon(const RequestRecord& record) {
  return record.outcome == Outcome::kConnection ||
         std::find(std::begin(kStatusesOfLater), std::end(kStatusesOfLater), record.status) !=
             std::end(kStatusesOfLater);
}

bool ProbeStopped(const ProbeOptions& options) {
  return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
}

// One request, from first to last.
RequestRecord Ask(Session* session, const BodyWriter& writer, const PlannedRequest& request,
                  const ProbeOptions& options) {
  RequestRecord record;
  record.wanted_output_tokens = request.output_tokens;
  record.scheduled_ns = SteadyNanos();
  Transfer* transfer = session->Acquire();
  bool done = false;
  transfer->Send({.body = writer.Write(request, nullptr),
                  .id = "",
                  .timeout_s = options.request_timeout_s,
                  .options = {.keep_text = false,
                              .max_events = writer.MostEvents(request),
                              .live_tokens = nullptr}},
                 &record, [&done] { done = true; });
  const Heartbeat look(session->loop(), kProbeLookNs, [&] {
    if (done || !ProbeStopped(options)) return;
    transfer->Abort(Outcome::kNotRun, "interrupted");
    done = true;
  });
  session->loop()->RunUntil([&done] { return done; });
  session->Release(transfer);
  return record;
}

void Pause(Session* session, const ProbeOptions& options) {
  bool over = false;
  const int64_t end_ns = SteadyNanos() + kPauseNs;
  const Heartbeat look(session->loop(), kProbeLookNs,
                       [&] { over = ProbeStopped(options) || SteadyNanos() >= end_ns; });
  session->loop()->RunUntil([&over] { return over; });
}

// Leaves out what a 400 names; false: it names nothing that could be left out.
bool GiveWay(const RequestRecord& record, BodyOptions* body) {
  if (record.status != 400 && record.status != 422) return false;
  const auto names = [&record](std::string_view name) {
    return record.reason.find(name) != std::string::npos;
  };
  if (body->continuous_usage && (names("continuous_usage") || names("stream_options"))) {
    body->continuous_usage = false;
    return true;
  }
  if (body->usage && (names("include_usage") || names("stream_options"))) {
    body->usage = false;
    return true;
  }
  return false;
}

std::string WhatToDo(const RequestRecord& record, const Target& target, const std::string& model) {
  if (record.status >= 300 && record.status < 400) {
    return "redirects are not followed: correct --base-url";
  }
  switch (record.status) {
    case 401:
    case 403:
      return "give the server's key with --api-key, --api-key-file or OPENAI_API_KEY";
    case 404:
      return fmt::format(
          "check --base-url, --endpoint ('{}') and --model ('{}'); GET /v1/models lists the models",
          target.endpoint, model);
    case 405:
      return fmt::format("'{}' is no endpoint that completes text; check --endpoint",
                         target.endpoint);
    case 400:
    case 413:
    case 422:
      return "lower the lengths (--input-len, --output-len) or leave out the parameter it names";
    case 429:
    case 502:
    case 503:
    case 504:
      return "wait until it is ready, or let this wait: --ready-check-timeout-sec 600";
    default:
      return "look into the server's log";
  }
}

}  // namespace

Error ProbeError(const RequestRecord& record, const Target& target, const std::string& model) {
  const std::string url = WithoutUserInfo(UrlOf(target, target.endpoint));
  Error error{ErrorCode::kIo, "server_failed", "", "base-url"};
  switch (record.outcome) {
    case Outcome::kConnection:
      error.reason = "no_answer";
      error.message = fmt::format(
          "{}: {}; start the server, correct --base-url, or wait for it with "
          "--ready-check-timeout-sec 600",
          url, record.reason);
      break;
    case Outcome::kGarbage:
      error.reason = "not_the_protocol";
      error.message = fmt::format(
          "{} does not answer as OpenAI's API does: {}; check --base-url and --endpoint", url,
          record.reason);
      break;
    case Outcome::kTimeout:
      error.reason = "no_answer";
      error.message = fmt::format(
          "{} did not answer one short request in time; look into the server's log, or give it "
          "longer with --request-timeout-sec",
          url);
      break;
    case Outcome::kNotRun:
      error.reason = "interrupted";
      error.message = "interrupted before the run began; nothing was measured";
      break;
    default:
      error.message = fmt::format("{} answered the first request with {}; {}", url, record.reason,
                                  WhatToDo(record, target, model));
  }
  return error;
}

Result<BodyOptions> Probe(Session* session, const BodyOptions& wanted, const PlannedRequest& like,
                          const ProbeOptions& options) {
  BodyOptions body = wanted;
  PlannedRequest request = Stranger(like, -1);
  request.output_tokens = std::min(std::max(request.output_tokens, 1), kProbeTokens);
  const int64_t give_up_ns =
      SteadyNanos() + static_cast<int64_t>(options.ready_timeout_s * kNanosPerSecond);
  while (true) {
    VIVACE_ASSIGN(const BodyWriter writer, BodyWriter::Create(body));
    VIVACE_RETURN_IF_ERROR(writer.Check(like));
    const RequestRecord record = Ask(session, writer, request, options);
    if (record.outcome == Outcome::kCompleted) return body;
    if (GiveWay(record, &body)) continue;
    if (!IsSoon(record) || ProbeStopped(options) || SteadyNanos() >= give_up_ns) {
      return tl::unexpected<Error>(ProbeError(record, session->target(), wanted.model));
    }
    Pause(session, options);
  }
}

}  // namespace vivace::load
