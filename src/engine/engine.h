// The engine: one thread that turns requests into tokens. Deciding is sched/ + kv/, computing is
// the Executor; this ties them, and is what the server, the benchmarks and the C++ API stand on.
//
// Threads: Submit, Abort and the getters may be called from any thread and never wait for a step.
// The engine thread never waits for a lock, a parse or a consumer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/executor.h"
#include "engine/request.h"

namespace vivace {

// Upper bounds of the histogram of step times; one more bucket holds the rest.
inline constexpr std::array<double, 14> kStepBoundsMs = {1,  2,  4,   8,   15,  25,   40,
                                                         50, 75, 100, 200, 400, 1000, 5000};

// The same for the tokens of a step; vLLM's bounds.
inline constexpr std::array<double, 13> kStepBoundsTokens = {1,   8,    16,   32,   64,   128,  256,
                                                             512, 1024, 2048, 4096, 8192, 16384};

// Counters and gauges of a moment; a consistent-enough copy, read without stopping the engine.
struct EngineStats {
  int64_t step = 0;              // steps completed: a heartbeat
  int64_t running = 0;           // sequences in the batch
  int64_t waiting = 0;           // sequences queued
  int64_t waiting_for_room = 0;  // 1: the first of them waits for the KV cache
  int64_t queued_requests = 0;   // never scheduled yet
  int64_t queued_tokens = 0;     // of their prompts
  // Of the last seconds; 0: not known. Prompt tokens, computed or found in the cache, of the steps
  // that had many; and what left the queue in the time in which anything did or waited, which is
  // less where it waits for places and not for its turn (service/forecast.h makes a wait of these).
  double prompt_tokens_per_s = 0;
  double queue_tokens_per_s = 0;
  double queue_requests_per_s = 0;
  int64_t blocks_total = 0;
  int64_t blocks_used = 0;    // referenced by a sequence
  int64_t blocks_cached = 0;  // free, contents still findable
  int64_t prompt_tokens = 0;  // computed or found in the cache
  int64_t generation_tokens = 0;
  int64_t forced_tokens = 0;   // of these, put down without being sampled
  int64_t prefix_queries = 0;  // prompt tokens looked up
  int64_t prefix_hits = 0;     // of these, found
  int64_t preemptions = 0;
  int64_t step_started_ns = 0;  // of the step being computed, 0 when idle; steady clock

  // Where the time of all steps went. What is neither kernels nor sampling is planning, laying out
  // rows, and publishing tokens.
  int64_t step_ns = 0;  // planning to publishing
  int64_t kernel_ns = 0;
  int64_t sample_ns = 0;
  std::array<int64_t, kStepBoundsMs.size() + 1> step_buckets{};  // steps no longer than the bound

  std::array<int64_t, kStepBoundsTokens.size() + 1> token_buckets{};  // steps by their tokens
  int64_t computed_tokens = 0;                                        // of all steps

  // Steps in which prompts advanced beside decodes; see --max-itl.
  int64_t mixed_steps = 0;
  int64_t mixed_prompt_tokens = 0;
  int64_t mixed_ns = 0;            // from launch to result
  int64_t mixed_predicted_ns = 0;  // of the same, as planned
};

class Engine {
 public:
  // Takes the executor and starts the thread. `eos_ids`: the model's end-of-text ids.
  static Result<std::unique_ptr<Engine>> Start(const EngineConfig& config,
                                               std::unique_ptr<Executor> executor,
                                               std::vector<TokenId> eos_ids);
  virtual ~Engine() = default;

  virtual const ExecutorLimits& limits() const = 0;
  virtual const EngineConfig& config() const = 0;

  // Validates against the model and the cache (a request that can never fit is kInvalidArgument
  // with both numbers; a full queue is kResourceExhausted), makes the ActiveRequest and queues it.
  // max_tokens is cut to what the context leaves. `consumer` is stored in it before it is queued.
  virtual Result<RequestPtr> Submit(GenerationRequest request, void* consumer) = 0;

  // Ends choice `choice` (all of them: -1) as soon as the running step ends. Idempotent; a no-op
  // for what is finished. The stream finishes with kAborted unless it ended by itself.
  virtual void Abort(const RequestPtr& request, int32_t choice = -1) = 0;

  // `notify` is called on the engine thread when requests have news and the last batch was taken;
  // it must not block (write to an eventfd, post to a loop). Set once, before the first Submit.
  virtual void OnReady(std::function<void()> notify) = 0;
  // Takes the requests that have news, oldest first. One consumer thread.
  virtual void TakeReady(std::vector<RequestPtr>* out) = 0;

  virtual EngineStats stats() const = 0;

  // Forgets cached prefixes that no running sequence uses.
  virtual void ResetPrefixCache() = 0;

  // No new requests (kUnavailable); running ones go on.
  virtual void BeginDrain() = 0;
  // Ends what still runs with kError, stops the thread. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace vivace
