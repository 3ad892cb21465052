// What is tuned: the flags of `vivace serve` that decide how requests share the machine, and the
// space of their values.
//
// Only flags that leave answers as they are belong here, but for the cache's element type: int8
// rounds keys and values, so it is in a space only where the user allows it. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/load_plan.h"

namespace vivace::tune {

struct Setting {
  int32_t max_num_seqs = 64;
  int32_t max_num_batched_tokens = 512;
  double max_itl_ms = 50;                          // 0: any
  std::optional<kernels::KvDType> kv_cache_dtype;  // unset: the tier's own
  int32_t threads = 1;
  bool operator==(const Setting&) const = default;
};

// "32 sequences, 1024 tokens, itl 50 ms, cache auto, 2 threads"
std::string Name(const Setting& setting);
std::string_view KvName(const Setting& setting);  // what --kv-cache-dtype takes
std::string ItlName(double max_itl_ms);           // "50 ms", "any"

void Apply(const Setting& setting, EngineConfig* config);
// The setting `serve` would use with this configuration, of which `plan` is.
Setting SettingOf(const EngineConfig& config, const LoadPlan& plan);

// Where a setting lies, for distances: octaves of sequences, tokens, the gap and threads, then the
// cache. Settings that behave alike are close.
inline constexpr size_t kDimensions = 5;
using Place = std::array<double, kDimensions>;
Place PlaceOf(const Setting& setting);

struct Space {
  std::vector<int32_t> max_num_seqs = {4, 8, 16, 32, 64, 128, 256, 512};
  std::vector<int32_t> max_num_batched_tokens = {256, 512, 1024, 2048, 4096, 8192, 16384};
  std::vector<double> max_itl_ms = {0, 25, 50, 100, 200};
  std::vector<std::optional<kernels::KvDType>> kv_cache_dtypes = {std::nullopt};
  std::vector<int32_t> threads;
};

// Numbers of threads worth a trial on a machine with so many processors: all, all but one, three
// quarters and half of them.
std::vector<int32_t> ThreadChoices(int32_t usable_cpus);

// All of them, those with the most threads first. Refuses a space that is empty, or larger than
// limits::kMaxTuneSettings.
Result<std::vector<Setting>> SettingsOf(const Space& space);

}  // namespace vivace::tune
