#include "load/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "load/chains.h"
#include "load/client/dispatcher.h"
#include "load/client/probe.h"
#include "load/client/server_sampler.h"
#include "load/shared_prompts.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

constexpr int64_t kLookNs = 20 * kNanosPerMs;  // for a stop; and a sample of how late we are
constexpr int64_t kProgressNs = 250 * kNanosPerMs;
constexpr int64_t kLeadNs = 5 * kNanosPerMs;  // from the end of preparing to the first arrival
constexpr double kMostCpu = 0.9;
constexpr double kMostLagMs = 5, kLeastLagMs = 1;
constexpr double kKeptRate = 0.95;

// Places that were asked for must be there; an open loop seldom needs as many as it has requests.
Result<std::unique_ptr<Session>> OpenSession(const Target& target, const RunOptions& options,
                                             const Workload& workload) {
  const auto all = static_cast<int64_t>(workload.requests.size());
  const int64_t places = std::min<int64_t>(options.max_concurrency, all);
  return places > 0 ? Session::Create(target, places, places) : Session::Create(target, all, 1);
}

Workload WarmUps(const Workload& workload, int32_t count) {
  Workload warm_ups;
  for (int32_t i = 0; i < count; ++i) {
    const size_t like = static_cast<size_t>(i) % workload.requests.size();
    warm_ups.requests.push_back(Stranger(workload.requests[like], i));
  }
  return warm_ups;
}

std::string IdPrefix() {
  return fmt::format("bench-{:08x}-", static_cast<uint32_t>(WallNanos() / 1'000));
}

bool Stopped(const LoadSettings& settings) {
  return settings.stop != nullptr && settings.stop->load(std::memory_order_relaxed);
}

// Runs a dispatcher to its end, looking up now and then: for a stop, the drain's deadline,
// progress.
class Watch {
 public:
  Watch(const LoadSettings& settings, const RunOptions& options, Session* session,
        Dispatcher* dispatcher, size_t total)
      : settings_(settings),
        options_(options),
        session_(session),
        dispatcher_(dispatcher),
        total_(static_cast<int64_t>(total)) {}

  // Why it ended before its time; empty: it did not.
  std::string RunToEnd(int64_t start_ns) {
    start_ns_ = told_ns_ = start_ns;
    dispatcher_->Start(start_ns);
    const Heartbeat look(session_->loop(), kLookNs, [this] { Look(); });
    session_->loop()->RunUntil([this] { return dispatcher_->done(); });
    return note_;
  }

 private:
  void Look() {
    const int64_t now_ns = SteadyNanos();
    if (Stopped(settings_)) return Stop("interrupted", Outcome::kNotRun);
    if (!dispatcher_->all_due()) {
      all_due_ns_ = now_ns;
    } else if (options_.drain_timeout_s > 0 &&
               Seconds(now_ns - all_due_ns_) > options_.drain_timeout_s) {
      return Stop(fmt::format("not answered within {:g} s after the last request was due "
                              "(--drain-timeout-sec)",
                              options_.drain_timeout_s),
                  Outcome::kTimeout);  // what the server was asked and did not do is its failure
    }
    if (now_ns - told_ns_ >= kProgressNs) Tell(now_ns);
  }

  void Stop(const std::string& why, Outcome under_way) {
    note_ = why;
    dispatcher_->Stop(why, under_way);
  }

  void Tell(int64_t now_ns) {
    if (!options_.on_progress) return;
    const int64_t tokens = dispatcher_->live_tokens();
    LiveFigures live;
    live.completed = dispatcher_->completed();
    live.failed = dispatcher_->failed();
    live.total = total_;
    live.running = dispatcher_->running();
    live.output_per_s = static_cast<double>(tokens - told_tokens_) / Seconds(now_ns - told_ns_);
    live.elapsed_s = Seconds(now_ns - start_ns_);
    told_tokens_ = tokens;
    told_ns_ = now_ns;
    options_.on_progress(live);
  }

  const LoadSettings& settings_;
  const RunOptions& options_;
  Session* const session_;
  Dispatcher* const dispatcher_;
  const int64_t total_;
  int64_t start_ns_ = 0, told_ns_ = 0, all_due_ns_ = 0, told_tokens_ = 0;
  std::string note_;
};

// False: interrupted.
bool WarmUp(const LoadSettings& settings, const RunOptions& options, const BodyWriter& body,
            const Workload& workload, Session* session) {
  const Workload warm_ups = WarmUps(workload, options.num_warmups);
  Dispatcher dispatcher(session, body, warm_ups, {},
                        {.max_concurrency = options.max_concurrency,
                         .request_timeout_s = settings.request_timeout_s,
                         .id_prefix = ""});
  RunOptions quiet;
  Watch watch(settings, quiet, session, &dispatcher, warm_ups.requests.size());
  return watch.RunToEnd(SteadyNanos()).empty();
}

// How fast requests were due, how fast they were sent and how late each was; only an open loop
// whose places are not limited says anything of the client.
void FillRequestRates(const RunOptions& options, const std::vector<RequestRecord>& records,
                      int64_t start_ns, ClientTimes* times) {
  if (options.max_concurrency > 0 || options.arrivals_s.empty()) return;
  int64_t due_ns = 0, sent_ns = 0, n = 0;
  LagCounts lag;
  for (const RequestRecord& record : records) {
    if (record.sent_ns == 0) continue;
    due_ns = std::max(due_ns, record.scheduled_ns - start_ns);
    sent_ns = std::max(sent_ns, record.sent_ns - start_ns);
    lag.Add(record.sent_ns - record.scheduled_ns);
    ++n;
  }
  if (due_ns <= 0 || sent_ns <= 0) return;  // all at once has no rate
  times->send_lag_p99_ms = lag.PercentileMs(99);
  times->wanted_rate = static_cast<double>(n) / Seconds(due_ns);
  times->sent_rate = static_cast<double>(n) / Seconds(sent_ns);
}

void Describe(const LoadSettings& settings, const RunOptions& options, const Workload& workload,
              RunResult* result) {
  static_cast<LoadPoint&>(*result) = options;
  result->label = options.label;
  result->base_url = WithoutUserInfo(settings.target.base_url);
  result->endpoint = settings.target.endpoint;
  result->model = settings.body.model;
  result->workload = workload.name;
  result->seed = workload.seed;
  result->promises = options.promises;
  result->environment = options.environment;
  result->shared_prompts = SharedPrompts(workload);
}

Status CheckWorkload(const BodyWriter& body, const RunOptions& options, const Workload& workload) {
  if (workload.requests.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no_requests", "num-prompts",
                "the dataset has no requests; give more with --num-prompts, or another "
                "--dataset-path");
  }
  for (const PlannedRequest& request : workload.requests) {
    VIVACE_RETURN_IF_ERROR(body.Check(request));
  }
  const size_t chains = ChainsOf(workload).size();
  if (!options.arrivals_s.empty() && options.arrivals_s.size() != chains) {
    return Fail(ErrorCode::kInternal, "arrivals_mismatch", "", "{} arrivals for {} chains",
                options.arrivals_s.size(), chains);
  }
  return {};
}

}  // namespace

Result<BodyOptions> Prepare(const LoadSettings& settings, const PlannedRequest& like) {
  VIVACE_ASSIGN(const auto session, Session::Create(settings.target, 1, 1));
  return Probe(session.get(), settings.body, like,
               {.ready_timeout_s = settings.ready_timeout_s,
                .request_timeout_s = settings.request_timeout_s,
                .stop = settings.stop});
}

Result<RunResult> Run(const LoadSettings& settings, const RunOptions& options,
                      const Workload& workload) {
  if (Stopped(settings)) {
    return Fail(ErrorCode::kUnavailable, "interrupted", "", "interrupted before the run began");
  }
  VIVACE_ASSIGN(const BodyWriter body, BodyWriter::Create(settings.body));
  VIVACE_RETURN_IF_ERROR(CheckWorkload(body, options, workload));
  VIVACE_ASSIGN(const auto session, OpenSession(settings.target, options, workload));
  RunResult result;
  Describe(settings, options, workload, &result);
  Dispatcher dispatcher(session.get(), body, workload, options.arrivals_s,
                        {.max_concurrency = options.max_concurrency,
                         .request_timeout_s = settings.request_timeout_s,
                         .id_prefix = IdPrefix()});
  if (options.num_warmups > 0 && !WarmUp(settings, options, body, workload, session.get())) {
    dispatcher.Stop("interrupted", Outcome::kNotRun);
    result.partial = true;
    result.note = "interrupted during the warm-up";
    result.started_unix_ms = WallNanos() / kNanosPerMs;
    result.records = dispatcher.TakeRecords();
    result.figures = ComputeFigures(result.records, result.promises);
    return result;
  }
  ServerSampler sampler(settings.target, session->loop(), session->driver());
  if (options.sample_server) sampler.Start();
  session->loop()->lag().Clear();
  const int64_t start_ns = SteadyNanos() + kLeadNs;
  const int64_t cpu_ns = ReadClock(CLOCK_THREAD_CPUTIME_ID);
  result.started_ns = start_ns;
  result.started_unix_ms = (WallNanos() + kLeadNs) / kNanosPerMs;
  Watch watch(settings, options, session.get(), &dispatcher, workload.requests.size());
  result.note = watch.RunToEnd(start_ns);
  result.partial = !result.note.empty();
  ClientTimes times;
  times.cpu_share = Seconds(ReadClock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) /
                    std::max(Seconds(SteadyNanos() - start_ns), 1e-9);
  times.loop_lag_p99_ms = session->loop()->lag().PercentileMs(99);
  sampler.Stop();
  result.server = sampler.Take();
  result.records = dispatcher.TakeRecords();
  result.figures = ComputeFigures(result.records, result.promises);
  times.ttft_p50_ms = result.figures.ttft_ms.p50;
  times.connections = session->connections();
  times.waited = dispatcher.waited_for_connections();
  FillRequestRates(options, result.records, start_ns, &times);
  result.client = JudgeClient(times);
  return result;
}

ClientLoad JudgeClient(const ClientTimes& times) {
  ClientLoad load;
  load.cpu_share = std::clamp(times.cpu_share, 0.0, 1.0);
  load.loop_lag_p99_ms = times.loop_lag_p99_ms;
  // Below a millisecond a machine that does anything else is as late as that.
  const double most_lag_ms = std::clamp(times.ttft_p50_ms * kLagOfTtft, kLeastLagMs, kMostLagMs);
  if (times.waited > 0) {
    load.why = fmt::format(
        "{} requests waited for a connection, of which this process may have {} at once (ulimit "
        "-n); raise that limit, or say with --max-concurrency how many there are to be",
        times.waited, times.connections);
  } else if (times.wanted_rate > 0 && times.sent_rate < kKeptRate * times.wanted_rate) {
    load.why = fmt::format(
        "requests were due at {:.4g} a second and sent at {:.4g}; lower --request-rate, or share "
        "it "
        "among clients on several machines",
        times.wanted_rate, times.sent_rate);
  } else if (load.cpu_share > kMostCpu) {
    load.why = fmt::format(
        "it used {:.0f} % of its core; lower the rate or the concurrency, or run it on a machine "
        "of "
        "its own",
        load.cpu_share * 100);
  } else if (load.loop_lag_p99_ms > most_lag_ms) {
    load.why = fmt::format(
        "its timers ran up to {:.1f} ms late (p99), more than the {:.1f} ms that this TTFT allows; "
        "leave a core free for it, or run it on a machine of its own",
        load.loop_lag_p99_ms, most_lag_ms);
  } else if (times.send_lag_p99_ms > most_lag_ms) {
    load.why = fmt::format(
        "requests were sent up to {:.1f} ms after they were due (p99), more than the {:.1f} ms "
        "that "
        "this TTFT allows; leave a core free for it, or share the rate among clients on several "
        "machines",
        times.send_lag_p99_ms, most_lag_ms);
  }
  load.bottleneck = !load.why.empty();
  return load;
}

}  // namespace vivace::load
