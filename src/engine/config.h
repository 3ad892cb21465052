// The engine's whole configuration: made once from flags, validated once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/cpu.h"
#include "base/result.h"
#include "kernels/block_ops.h"

namespace vivace {

struct EngineConfig {
  std::string model;          // path of a model file
  int32_t max_model_len = 0;  // tokens of a sequence; 0: the model's context
  // Sequences computed in one step; unset: 64, or fewer where recurrent states would take too much.
  std::optional<int32_t> max_num_seqs;
  int32_t max_num_batched_tokens = 512;  // tokens of one step
  double max_itl_ms = 50.0;              // most time between a stream's tokens; 0: any
  int64_t kv_cache_memory_bytes = 0;     // 0: sized from the memory that is there
  int32_t num_kv_blocks = 0;             // 0: from the bytes above
  int32_t block_size = 16;               // tokens of a KV block, a multiple of 16
  bool enable_prefix_caching = true;
  int32_t max_queued_requests = 256;               // waiting requests before a new one is refused
  int64_t max_queued_tokens = 1 << 20;             // their prompt tokens together
  int32_t threads = 0;                             // compute threads; 0: the usable CPUs
  std::optional<Isa> isa;                          // unset: the best the machine has
  std::optional<kernels::KvDType> kv_cache_dtype;  // unset: the tier's own
  std::optional<DType> quantization;  // of full-precision matrices, at load; unset: as they are
  uint64_t seed = 0;                  // of requests that bring none; 0: from the system
  std::string weight_cache;           // folder of packed weights kept between starts; empty: none
  int64_t weight_cache_size = int64_t{8} << 30;  // bytes all of them may take
};

// Every range and combination; the error names the flag and what to give instead.
Status Validate(const EngineConfig& config);

}  // namespace vivace
