#include "load/validity.h"

#include <fmt/format.h>

#include <algorithm>

namespace vivace::load {
namespace {

constexpr double kManyWrongLengths = 0.01;
constexpr double kManyTokensAChunk = 1.05;
constexpr double kManyCached = 0.05;  // beyond what prompts share, and beside these tokens of each
constexpr double kSharedInText = 2, kSharedInChat = 64;
constexpr int64_t kFewForP99 = 100;
constexpr double kLagMs = 5;  // of sending, p99

int64_t EndedRequests(const Figures& f) { return f.completed + f.failed; }

int64_t Uncounted(const RunResult& run) {
  int64_t count = 0;
  for (const RequestRecord& r : run.records)
    count += r.outcome == Outcome::kCompleted && !r.counted;
  return count;
}

// What a server that saw nothing but this run can find in its prefix cache.
double CacheableShare(const RunResult& run) {
  const double each = run.endpoint.ends_with("/chat/completions") ? kSharedInChat : kSharedInText;
  const Figures& f = run.figures;
  return run.shared_prompts + kManyCached +
         each * static_cast<double>(f.completed) / std::max<double>(1, f.input_tokens);
}

std::string CommonestFailure(const Figures& f) {
  std::string reason;
  int64_t most = 0;
  for (const auto& [name, count] : f.failures) {
    if (count > most) most = count, reason = name;
  }
  return reason;
}

}  // namespace

double CachedShare(const Figures& f) {
  return f.input_tokens > 0 ? static_cast<double>(f.cached_tokens) / f.input_tokens : 0;
}

std::string FewForP99(int64_t completed) {
  if (completed <= 0 || completed >= kFewForP99) return "";
  return fmt::format("fewer than {} requests completed: a p99 is about the slowest of them",
                     kFewForP99);
}

std::vector<std::string> InvalidBecause(const RunResult& run) {
  const Figures& f = run.figures;
  std::vector<std::string> why;
  if (f.completed == 0) {
    why.push_back(f.failed > 0
                      ? fmt::format("no request completed; most often: {}", CommonestFailure(f))
                      : "no request was run");
  } else if (f.failed > kMostFailures * EndedRequests(f)) {
    why.push_back(fmt::format("{} of {} requests failed (over {:.0f} %); most often: {}", f.failed,
                              EndedRequests(f), kMostFailures * 100, CommonestFailure(f)));
  }
  if (run.client.bottleneck) {
    why.push_back(fmt::format("the client slowed the run down: {}",
                              run.client.why.empty() ? "it had no CPU time left" : run.client.why));
  }
  return why;
}

std::vector<std::string> Warnings(const RunResult& run) {
  const Figures& f = run.figures;
  std::vector<std::string> out;
  if (run.partial) {
    std::string text =
        fmt::format("the run ended early ({})", run.note.empty() ? "stopped" : run.note);
    if (const int64_t unsent = f.not_run - f.interrupted; unsent > 0) {
      text += fmt::format(": {} of {} requests were never sent", unsent, f.requests);
    }
    out.push_back(std::move(text));
  }
  if (f.interrupted > 0) {
    out.push_back(fmt::format(
        "{} of {} requests were sent and interrupted before they ended: no figure has them, and "
        "those that take longest are among them",
        f.interrupted, f.requests));
  }
  if (f.failed > 0 && f.completed > 0 && f.failed <= kMostFailures * EndedRequests(f)) {
    out.push_back(fmt::format("{} of {} requests failed; most often: {}", f.failed,
                              EndedRequests(f), CommonestFailure(f)));
  }
  if (const double cached = CachedShare(f); cached > CacheableShare(run)) {
    out.push_back(fmt::format(
        "{:.0f} % of the prompts' tokens came from the server's prefix cache, and these prompts "
        "share {:.0f} %: the server knew them from before, and TTFT is too good; give another "
        "--seed, or start the server anew",
        cached * 100, std::max(run.shared_prompts, 0.0) * 100));
  }
  if (f.wrong_lengths > kManyWrongLengths * f.completed) {
    out.push_back(
        fmt::format("{} of {} answers are not of the length that was asked for: use "
                    "--ignore-eos, or read the lengths as they are",
                    f.wrong_lengths, f.completed));
  }
  if (const int64_t uncounted = Uncounted(run); uncounted > 0) {
    out.push_back(
        fmt::format("the server gave no usage for {} requests: their tokens are guessed "
                    "from the dataset and the chunks",
                    uncounted));
  }
  if (f.tokens_per_chunk > kManyTokensAChunk && !f.itl_per_token) {
    out.push_back(
        fmt::format("{:.2f} tokens came in a chunk: ITL is per chunk and larger than "
                    "TPOT; read TPOT",
                    f.tokens_per_chunk));
  }
  if (std::string few = FewForP99(f.completed); !few.empty()) out.push_back(std::move(few));
  // Where places are limited, waiting for one is not lateness; the client measures its loop itself.
  if (run.max_concurrency == 0 && f.send_lag_ms.n > 0 && f.send_lag_ms.p99 > kLagMs &&
      f.send_lag_ms.p99 > kLagOfTtft * f.ttft_ms.mean) {
    out.push_back(fmt::format("requests were sent late (p99 {:.1f} ms); the latencies contain it",
                              f.send_lag_ms.p99));
  }
  return out;
}

}  // namespace vivace::load
