// The server's metrics: vLLM's names where it has one for the thing, so that its dashboards and
// autoscalers work unchanged, and ours (vivace:) for the rest.
//
// Updated from the loop thread while requests live; rendered from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/engine.h"
#include "server/metrics/registry.h"

namespace vivace::server {

// Why a request got no answer of the model.
enum class Rejection : uint8_t {
  kInvalid,     // 4xx about its content
  kOverloaded,  // queue or token cap
  kShuttingDown,
  kNoRoute,   // 404 and 405
  kNoAccess,  // 401 and 403
  kCount,
};

// How a choice ended, as vLLM labels it.
enum class FinishLabel : uint8_t { kStop, kLength, kAbort, kError, kCount };

// Of the KV cache, for vLLM's cache_config_info.
struct CacheFacts {
  int32_t block_size = 0;
  int32_t num_blocks = 0;
  bool prefix_caching = false;
};

class ServerMetrics {
 public:
  explicit ServerMetrics(const std::string& model_name, const CacheFacts& cache = {});

  void CountRejection(Rejection reason) { rejected_[static_cast<size_t>(reason)]->Add(); }
  void CountFinish(FinishLabel label) { finished_[static_cast<size_t>(label)]->Add(); }
  // 2xx .. 5xx.
  void CountResponse(int status);

  // The text of a scrape, with the engine's figures of now.
  std::string Render(const EngineStats& stats);

  Histogram* time_to_first_token;
  Histogram* inter_token_latency;
  Histogram* e2e_latency;
  Histogram* queue_time;
  Histogram* prefill_time;
  Histogram* decode_time;
  Histogram* inference_time;
  Histogram* time_per_output_token;  // of a choice, on average
  Histogram* max_generation_tokens;  // of the longest choice of a request
  Histogram* prompt_tokens_computed;
  Histogram* preemptions_per_request;
  Histogram* prompt_tokens_per_request;
  Histogram* generation_tokens_per_request;
  Histogram* params_n;
  Histogram* params_max_tokens;
  Histogram* grammar_time;       // requests' wait for their grammar's compilation
  Gauge* awaiting_grammar;       // of the waiting, those that do so now
  Counter* cached_tokens;        // prompt tokens of ended requests that the cache had
  Counter* deadlines_passed;     // deadline_ms
  Counter* queue_limits_passed;  // max_queue_ms
  Counter* clients_gone;         // closed before their answer was complete
  Counter* slow_consumer_waits;  // times output was held back for a slow client

 private:
  void AddEngineFamilies();
  void AddOldNames();
  void AddCacheInfo(const CacheFacts& cache);
  void AddLengthFamilies();
  void AddStepFamilies();
  void MirrorSteps(const EngineStats& stats);
  void AddRequestFamilies();

  MetricsRegistry registry_;
  std::array<Counter*, static_cast<size_t>(Rejection::kCount)> rejected_{};
  std::array<Counter*, static_cast<size_t>(FinishLabel::kCount)> finished_{};
  std::array<Counter*, 4> responses_{};

  Gauge* running_;
  Gauge* waiting_;
  std::array<Gauge*, 2> waiting_by_reason_{};  // capacity, deferred
  Gauge* kv_usage_;
  Gauge* kv_usage_old_;
  Gauge* blocks_total_;
  Gauge* blocks_used_;
  Gauge* blocks_cached_;
  Counter* prompt_tokens_;
  Counter* generation_tokens_;
  Counter* prefix_queries_;
  Counter* prefix_hits_;
  Counter* prefix_queries_old_;
  Counter* prefix_hits_old_;
  Counter* preemptions_;
  Counter* steps_;
  Histogram* step_seconds_;
  Histogram* step_tokens_;
  Gauge* prompt_rate_;
  Gauge* queued_tokens_;
  std::array<Counter*, 3> step_parts_{};  // in microseconds: kernels, sampling, the rest
  Counter* mixed_steps_;
  Counter* mixed_prompt_tokens_;
  Counter* mixed_us_;
  Counter* mixed_predicted_us_;
  Gauge* resident_bytes_;
  Gauge* start_time_;
};

}  // namespace vivace::server
