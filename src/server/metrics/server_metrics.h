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
  kNoRoute,  // 404 and 405
  kCount,
};

// How a choice ended, as vLLM labels it.
enum class FinishLabel : uint8_t { kStop, kLength, kAbort, kError, kCount };

class ServerMetrics {
 public:
  explicit ServerMetrics(const std::string& model_name);

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
  Histogram* prompt_tokens_per_request;
  Histogram* generation_tokens_per_request;
  Histogram* params_n;
  Histogram* params_max_tokens;
  Counter* clients_gone;         // closed before their answer was complete
  Counter* slow_consumer_waits;  // times output was held back for a slow client

 private:
  void AddEngineFamilies();
  void AddStepFamilies();
  void MirrorSteps(const EngineStats& stats);
  void AddRequestFamilies();

  MetricsRegistry registry_;
  std::array<Counter*, static_cast<size_t>(Rejection::kCount)> rejected_{};
  std::array<Counter*, static_cast<size_t>(FinishLabel::kCount)> finished_{};
  std::array<Counter*, 4> responses_{};

  Gauge* running_;
  Gauge* waiting_;
  Gauge* kv_usage_;
  Gauge* blocks_total_;
  Gauge* blocks_used_;
  Gauge* blocks_cached_;
  Counter* prompt_tokens_;
  Counter* generation_tokens_;
  Counter* prefix_queries_;
  Counter* prefix_hits_;
  Counter* preemptions_;
  Counter* steps_;
  Histogram* step_seconds_;
  std::array<Counter*, 3> step_parts_{};  // in microseconds: kernels, sampling, the rest
  Counter* mixed_steps_;
  Counter* mixed_prompt_tokens_;
  Counter* mixed_us_;
  Counter* mixed_predicted_us_;
  Gauge* resident_bytes_;
  Gauge* start_time_;
};

}  // namespace vivace::server
