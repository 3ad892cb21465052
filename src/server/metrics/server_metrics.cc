#include "server/metrics/server_metrics.h"

#include <chrono>
#include <string>

#include "base/resident_memory.h"

namespace vivace::server {
namespace {

// Seconds. First tokens and whole requests: vLLM's bounds. Between tokens: vLLM starts at 10 ms, a
// small model on a good CPU is far below that.
constexpr double kFirstTokenBounds[] = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                        0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                        20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
constexpr double kInterTokenBounds[] = {
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075,
    0.1,    0.15,  0.2,   0.3,   0.4,   0.5,    0.75, 1.0,   2.5,  5.0,   10.0, 20.0, 40.0, 80.0};
constexpr double kRequestBounds[] = {0.05, 0.1,   0.3,   0.5,   0.8,   1.0,    1.5,   2.0,
                                     2.5,  5.0,   10.0,  15.0,  20.0,  30.0,   40.0,  50.0,
                                     60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr double kTokenBounds[] = {1,   2,    5,    10,   20,    50,    100,   200,
                                   500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
constexpr double kPreemptionBounds[] = {0, 1, 2, 5, 10, 20, 50};
constexpr double kChoiceBounds[] = {1, 2, 5, 10, 20, 50, 100, 128};

}  // namespace

ServerMetrics::ServerMetrics(const std::string& model_name, const CacheFacts& cache)
    : registry_(Labels{{"model_name", model_name}}) {
  AddEngineFamilies();
  AddOldNames();
  AddCacheInfo(cache);
  AddRequestFamilies();
  AddLengthFamilies();
  resident_bytes_ = registry_.AddGauge("process_resident_memory_bytes", "Memory in RAM.");
  start_time_ = registry_.AddGauge("process_start_time_seconds", "Start, in Unix time.");
  start_time_->Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
}

void ServerMetrics::AddEngineFamilies() {
  running_ = registry_.AddGauge("vllm:num_requests_running", "Sequences in the running batch.");
  waiting_ = registry_.AddGauge("vllm:num_requests_waiting",
                                "Sequences waiting to run, or requests for their grammar.");
  static constexpr const char* kReasons[] = {"capacity", "deferred"};
  for (size_t i = 0; i < waiting_by_reason_.size(); ++i) {
    waiting_by_reason_[i] =
        registry_.AddGauge("vllm:num_requests_waiting_by_reason",
                           "Sequences waiting: for room in the KV cache (capacity), for their turn "
                           "or a grammar (deferred).",
                           {{"reason", kReasons[i]}});
  }
  kv_usage_ = registry_.AddGauge("vllm:kv_cache_usage_perc", "KV blocks in use, 1 is all.");
  prompt_tokens_ = registry_.AddCounter("vllm:prompt_tokens_total",
                                        "Prompt tokens, computed or found in the cache.");
  generation_tokens_ = registry_.AddCounter("vllm:generation_tokens_total", "Output tokens.");
  prefix_queries_ = registry_.AddCounter("vllm:prefix_cache_queries_total",
                                         "Prompt tokens looked up in the prefix cache.");
  prefix_hits_ =
      registry_.AddCounter("vllm:prefix_cache_hits_total", "Of these, tokens that were found.");
  preemptions_ = registry_.AddCounter("vllm:num_preemptions_total",
                                      "Sequences set back to make room for others.");
  blocks_total_ = registry_.AddGauge("vivace:kv_blocks_total", "KV blocks there are.");
  blocks_used_ = registry_.AddGauge("vivace:kv_blocks_used", "KV blocks that a sequence holds.");
  blocks_cached_ =
      registry_.AddGauge("vivace:kv_blocks_cached", "Free KV blocks whose contents can be found.");
  AddStepFamilies();
}

// Names that dashboards of older vLLM query.
void ServerMetrics::AddOldNames() {
  kv_usage_old_ = registry_.AddGauge("vllm:gpu_cache_usage_perc",
                                     "vllm:kv_cache_usage_perc under its older name.");
  prefix_queries_old_ =
      registry_.AddCounter("vllm:gpu_prefix_cache_queries_total",
                           "vllm:prefix_cache_queries_total under its older name.");
  prefix_hits_old_ = registry_.AddCounter("vllm:gpu_prefix_cache_hits_total",
                                          "vllm:prefix_cache_hits_total under its older name.");
}

void ServerMetrics::AddCacheInfo(const CacheFacts& cache) {
  registry_
      .AddGauge("vllm:cache_config_info", "How the KV cache is set up; the value is 1.",
                {{"block_size", std::to_string(cache.block_size)},
                 {"num_gpu_blocks", std::to_string(cache.num_blocks)},
                 {"enable_prefix_caching", cache.prefix_caching ? "True" : "False"}})
      ->Set(1.0);
}

void ServerMetrics::AddStepFamilies() {
  step_tokens_ =
      registry_.AddHistogram("vllm:iteration_tokens_total", "Tokens of a step.", kStepBoundsTokens);
  prompt_rate_ = registry_.AddGauge(
      "vivace:prompt_tokens_per_second",
      "How fast prompts are computed, of steps with 32 of their tokens or more.");
  queued_tokens_ = registry_.AddGauge("vivace:queued_prompt_tokens",
                                      "Prompt tokens that wait for a first step.");
  static constexpr auto kStepBounds = [] {
    std::array<double, kStepBoundsMs.size()> seconds = kStepBoundsMs;
    for (double& bound : seconds) bound /= 1000.0;
    return seconds;
  }();
  steps_ = registry_.AddCounter("vivace:engine_steps_total", "Steps completed.");
  step_seconds_ = registry_.AddHistogram("vivace:engine_step_seconds",
                                         "Steps, from planning to publishing.", kStepBounds);
  static constexpr const char* kPartNames[] = {"kernels", "sampling", "other"};
  for (size_t i = 0; i < step_parts_.size(); ++i) {
    step_parts_[i] =
        registry_.AddCounter("vivace:engine_step_microseconds_total",
                             "Time of all steps, by what it went to.", {{"part", kPartNames[i]}});
  }
  mixed_steps_ = registry_.AddCounter("vivace:mixed_steps_total",
                                      "Steps in which prompts advanced beside running answers.");
  mixed_prompt_tokens_ =
      registry_.AddCounter("vivace:mixed_step_prompt_tokens_total",
                           "Prompt tokens of these steps: the chunks that --max-itl allowed.");
  mixed_us_ = registry_.AddCounter("vivace:mixed_step_microseconds_total", "Time of these steps.");
  mixed_predicted_us_ = registry_.AddCounter("vivace:mixed_step_predicted_microseconds_total",
                                             "Time these steps were planned to take.");
}

void ServerMetrics::AddRequestFamilies() {
  time_to_first_token = registry_.AddHistogram(
      "vllm:time_to_first_token_seconds", "From arrival to the first token.", kFirstTokenBounds);
  inter_token_latency = registry_.AddHistogram("vllm:inter_token_latency_seconds",
                                               "Between output tokens.", kInterTokenBounds);
  e2e_latency = registry_.AddHistogram("vllm:e2e_request_latency_seconds",
                                       "From arrival to the last token.", kRequestBounds);
  queue_time = registry_.AddHistogram("vllm:request_queue_time_seconds",
                                      "From arrival to the first step.", kRequestBounds);
  prefill_time = registry_.AddHistogram("vllm:request_prefill_time_seconds",
                                        "From the first step to the first token.", kRequestBounds);
  decode_time = registry_.AddHistogram("vllm:request_decode_time_seconds",
                                       "From the first to the last token.", kRequestBounds);
  inference_time = registry_.AddHistogram("vllm:request_inference_time_seconds",
                                          "From the first step to the last token.", kRequestBounds);
  time_per_output_token =
      registry_.AddHistogram("vllm:request_time_per_output_token_seconds",
                             "Between output tokens, the mean of a choice.", kInterTokenBounds);
  prompt_tokens_per_request =
      registry_.AddHistogram("vllm:request_prompt_tokens", "Prompt tokens.", kTokenBounds);
  generation_tokens_per_request =
      registry_.AddHistogram("vllm:request_generation_tokens", "Output tokens.", kTokenBounds);
  grammar_time = registry_.AddHistogram(
      "vivace:request_grammar_time_seconds",
      "Of requests whose grammar was not compiled before: their wait for that.", kRequestBounds);
  awaiting_grammar =
      registry_.AddGauge("vivace:num_requests_waiting_for_grammar",
                         "Of the waiting, requests whose grammar must be compiled first.");
  params_n = registry_.AddHistogram("vllm:request_params_n", "The parameter n.", kChoiceBounds);
  params_max_tokens = registry_.AddHistogram("vllm:request_params_max_tokens",
                                             "The parameter max_tokens.", kTokenBounds);
  static constexpr const char* kFinishNames[] = {"stop", "length", "abort", "error"};
  for (size_t i = 0; i < finished_.size(); ++i) {
    finished_[i] = registry_.AddCounter("vllm:request_success_total", "Choices that ended.",
                                        {{"finished_reason", kFinishNames[i]}});
  }
  static constexpr const char* kRejectionNames[] = {"invalid", "overloaded", "shutting_down",
                                                    "no_route", "no_access"};
  for (size_t i = 0; i < rejected_.size(); ++i) {
    rejected_[i] = registry_.AddCounter("vivace:requests_rejected_total", "Requests refused.",
                                        {{"reason", kRejectionNames[i]}});
  }
  static constexpr const char* kClassNames[] = {"2xx", "3xx", "4xx", "5xx"};
  for (size_t i = 0; i < responses_.size(); ++i) {
    responses_[i] = registry_.AddCounter("vivace:http_responses_total", "Answers by status.",
                                         {{"status", kClassNames[i]}});
  }
  static constexpr const char* kLimit = "vivace:time_limits_passed_total";
  static constexpr const char* kLimitHelp = "Requests that a limit of time of their own has ended.";
  deadlines_passed = registry_.AddCounter(kLimit, kLimitHelp, {{"limit", "deadline_ms"}});
  queue_limits_passed = registry_.AddCounter(kLimit, kLimitHelp, {{"limit", "max_queue_ms"}});
  clients_gone = registry_.AddCounter("vivace:clients_gone_total",
                                      "Requests whose client left before the answer's end.");
  slow_consumer_waits = registry_.AddCounter("vivace:slow_consumer_waits_total",
                                             "Times output was held back for a slow client.");
}

void ServerMetrics::AddLengthFamilies() {
  max_generation_tokens =
      registry_.AddHistogram("vllm:request_max_num_generation_tokens",
                             "Output tokens of a request's longest choice.", kTokenBounds);
  prompt_tokens_computed =
      registry_.AddHistogram("vllm:request_prefill_kv_computed_tokens",
                             "Prompt tokens that the cache did not have.", kTokenBounds);
  preemptions_per_request = registry_.AddHistogram(
      "vllm:request_num_preemptions", "Times a request was set back.", kPreemptionBounds);
  cached_tokens = registry_.AddCounter("vllm:prompt_tokens_cached_total",
                                       "Prompt tokens of ended requests that the cache had.");
}

void ServerMetrics::CountResponse(int status) {
  const int index = status / 100 - 2;
  if (index >= 0 && index < static_cast<int>(responses_.size())) {
    responses_[static_cast<size_t>(index)]->Add();
  }
}

std::string ServerMetrics::Render(const EngineStats& stats) {
  running_->Set(static_cast<double>(stats.running));
  // As in vLLM, those that wait for a grammar are among them.
  const double waiting = static_cast<double>(stats.waiting) + awaiting_grammar->value();
  const double for_room = static_cast<double>(stats.waiting_for_room > 0 ? stats.waiting : 0);
  waiting_->Set(waiting);
  waiting_by_reason_[0]->Set(for_room);
  waiting_by_reason_[1]->Set(waiting - for_room);
  const double total = static_cast<double>(stats.blocks_total);
  kv_usage_->Set(total > 0 ? static_cast<double>(stats.blocks_used) / total : 0.0);
  kv_usage_old_->Set(kv_usage_->value());
  blocks_total_->Set(total);
  blocks_used_->Set(static_cast<double>(stats.blocks_used));
  blocks_cached_->Set(static_cast<double>(stats.blocks_cached));
  prompt_tokens_->Mirror(stats.prompt_tokens);
  generation_tokens_->Mirror(stats.generation_tokens);
  prefix_queries_->Mirror(stats.prefix_queries);
  prefix_hits_->Mirror(stats.prefix_hits);
  prefix_queries_old_->Mirror(stats.prefix_queries);
  prefix_hits_old_->Mirror(stats.prefix_hits);
  preemptions_->Mirror(stats.preemptions);
  MirrorSteps(stats);
  resident_bytes_->Set(static_cast<double>(ResidentBytes()));
  return registry_.Render();
}

void ServerMetrics::MirrorSteps(const EngineStats& stats) {
  steps_->Mirror(stats.step);
  step_seconds_->Mirror(stats.step_buckets, static_cast<double>(stats.step_ns) * 1e-9);
  step_tokens_->Mirror(stats.token_buckets, static_cast<double>(stats.computed_tokens));
  prompt_rate_->Set(stats.prompt_tokens_per_s);
  queued_tokens_->Set(static_cast<double>(stats.queued_tokens));
  const int64_t parts_ns[] = {stats.kernel_ns, stats.sample_ns,
                              stats.step_ns - stats.kernel_ns - stats.sample_ns};
  for (size_t i = 0; i < step_parts_.size(); ++i) step_parts_[i]->Mirror(parts_ns[i] / 1000);
  mixed_steps_->Mirror(stats.mixed_steps);
  mixed_prompt_tokens_->Mirror(stats.mixed_prompt_tokens);
  mixed_us_->Mirror(stats.mixed_ns / 1000);
  mixed_predicted_us_->Mirror(stats.mixed_predicted_ns / 1000);
}

}  // namespace vivace::server
