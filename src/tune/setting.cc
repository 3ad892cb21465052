#include "tune/setting.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace vivace::tune {
namespace {

constexpr double kNoItlMs = 800;   // an octave above the longest of the space
constexpr double kKvDistance = 2;  // octaves

}  // namespace

std::string_view KvName(const Setting& setting) {
  return setting.kv_cache_dtype ? kernels::Name(*setting.kv_cache_dtype) : "auto";
}

std::string ItlName(double max_itl_ms) {
  return max_itl_ms > 0 ? fmt::format("{} ms", max_itl_ms) : "any";
}

std::string Name(const Setting& setting) {
  return fmt::format("{} sequences, {} tokens, itl {}, cache {}, {} thread{}", setting.max_num_seqs,
                     setting.max_num_batched_tokens, ItlName(setting.max_itl_ms), KvName(setting),
                     setting.threads, setting.threads == 1 ? "" : "s");
}

void Apply(const Setting& setting, EngineConfig* config) {
  config->max_num_seqs = setting.max_num_seqs;
  config->max_num_batched_tokens = setting.max_num_batched_tokens;
  config->max_itl_ms = setting.max_itl_ms;
  config->kv_cache_dtype = setting.kv_cache_dtype;
  config->threads = setting.threads;
}

Setting SettingOf(const EngineConfig& config, const LoadPlan& plan) {
  return {.max_num_seqs = plan.memory.limits.max_sequences,
          .max_num_batched_tokens = config.max_num_batched_tokens,
          .max_itl_ms = config.max_itl_ms,
          .kv_cache_dtype = config.kv_cache_dtype,
          .threads = plan.threads};
}

Place PlaceOf(const Setting& setting) {
  return {std::log2(setting.max_num_seqs), std::log2(setting.max_num_batched_tokens),
          std::log2(setting.max_itl_ms > 0 ? setting.max_itl_ms : kNoItlMs),
          2 * std::log2(setting.threads),
          setting.kv_cache_dtype == kernels::KvDType::kI8 ? kKvDistance : 0};
}

std::vector<int32_t> ThreadChoices(int32_t usable_cpus) {
  std::vector<int32_t> choices = {usable_cpus, usable_cpus - 1, usable_cpus * 3 / 4,
                                  usable_cpus / 2};
  std::erase_if(choices, [](int32_t n) { return n < 1; });
  std::ranges::sort(choices, std::greater());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  return choices;
}

Result<std::vector<Setting>> SettingsOf(const Space& space) {
  const size_t size = space.max_num_seqs.size() * space.max_num_batched_tokens.size() *
                      space.max_itl_ms.size() * space.kv_cache_dtypes.size() * space.threads.size();
  if (size == 0 || size > limits::kMaxTuneSettings) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", "max-num-seqs",
                "the space has {} settings; give values that make 1 to {}", size,
                limits::kMaxTuneSettings);
  }
  std::vector<int32_t> threads = space.threads;
  std::ranges::sort(threads, std::greater());
  std::vector<Setting> settings;
  settings.reserve(size);
  for (const int32_t n : threads)
    for (const auto& kv : space.kv_cache_dtypes)
      for (const double itl : space.max_itl_ms)
        for (const int32_t tokens : space.max_num_batched_tokens)
          for (const int32_t seqs : space.max_num_seqs)
            settings.push_back({.max_num_seqs = seqs,
                                .max_num_batched_tokens = tokens,
                                .max_itl_ms = itl,
                                .kv_cache_dtype = kv,
                                .threads = n});
  return settings;
}

}  // namespace vivace::tune
