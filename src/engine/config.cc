#include "engine/config.h"

#include "kernels/fastest_isa.h"

namespace vivace {
namespace {

constexpr double kMaxItlLimitMs = 60'000.0;  // a minute; beyond it, no target is meant

struct Range {
  const char* flag;
  int64_t value;
  int64_t low;
  int64_t high;
};

}  // namespace

Status Validate(const EngineConfig& config) {
  const Range ranges[] = {
      {"max-model-len", config.max_model_len, 0, 1 << 24},
      {"max-num-seqs", config.max_num_seqs.value_or(1), 1, 4096},
      {"max-num-batched-tokens", config.max_num_batched_tokens, 1, 1 << 20},
      {"kv-cache-memory-bytes", config.kv_cache_memory_bytes, 0, int64_t{1} << 50},
      {"num-kv-blocks", config.num_kv_blocks, 0, 1 << 28},
      {"block-size", config.block_size, 16, 1024},
      {"max-queued-requests", config.max_queued_requests, 1, 1 << 20},
      {"max-queued-tokens", config.max_queued_tokens, 1, int64_t{1} << 40},
      {"threads", config.threads, 0, 1024},
      {"weight-cache-size", config.weight_cache_size, 0, int64_t{1} << 60},
  };
  for (const Range& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return Fail(ErrorCode::kInvalidArgument, "flag_range", range.flag,
                  "--{} is {}; give a value from {} to {}", range.flag, range.value, range.low,
                  range.high);
    }
  }
  // Written so that NaN is refused too.
  if (!(config.max_itl_ms >= 0.0 && config.max_itl_ms <= kMaxItlLimitMs)) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", "max-itl",
                "--max-itl is {} ms; give a value from 0 (off) to {}", config.max_itl_ms,
                kMaxItlLimitMs);
  }
  if (config.block_size % 16 != 0) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", "block-size",
                "--block-size is {}; give a multiple of 16", config.block_size);
  }
  if (config.kv_cache_memory_bytes != 0 && config.num_kv_blocks != 0) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "num-kv-blocks",
                "--kv-cache-memory-bytes and --num-kv-blocks both size the cache; give one");
  }
  if (config.isa && !Supported(*config.isa)) {
    return Fail(ErrorCode::kUnsupported, "isa_unsupported", "isa",
                "this machine has no {}; --isa auto takes the best it has ({})", Name(*config.isa),
                Name(kernels::FastestIsa()));
  }
  return {};
}

}  // namespace vivace
