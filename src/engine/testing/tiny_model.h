// A small random llama as a file, opened, and executors over it. Tests only.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/cpu_executor.h"
#include "formats/tiny_llama.h"

namespace vivace::testing {

class TinyModel {
 public:
  explicit TinyModel(const formats::TinyLlamaOptions& options = {})
      : path_(
            (std::filesystem::temp_directory_path() / ("vivace_tiny_" + std::to_string(getpid()) +
                                                       "_" + std::to_string(++counter_) + ".gguf"))
                .string()) {
    VIVACE_CHECK(formats::MakeTinyLlama(options).WriteFile(path_));
    auto file = model::OpenModel(path_);
    VIVACE_CHECK(file.has_value());
    file_ = std::make_unique<model::ModelFile>(std::move(*file));
  }
  ~TinyModel() { std::filesystem::remove(path_); }
  TinyModel(const TinyModel&) = delete;
  TinyModel& operator=(const TinyModel&) = delete;

  const model::ModelFile& file() const { return *file_; }

 private:
  static inline int counter_ = 0;
  std::string path_;
  std::unique_ptr<model::ModelFile> file_;
};

// Small enough for any test machine, and no reading of the machine's free memory.
inline EngineConfig TestConfig(Isa isa, int threads = 2) {
  EngineConfig config;
  config.max_num_seqs = 40;
  config.max_num_batched_tokens = 512;
  config.num_kv_blocks = 512;
  config.threads = threads;
  config.isa = isa;
  return config;
}

inline std::unique_ptr<Executor> MakeExecutor(const EngineConfig& config,
                                              const model::ModelFile& file,
                                              std::vector<TokenId> eos_ids = {}) {
  auto executor = CreateCpuExecutor(config, file, std::move(eos_ids), {});
  VIVACE_CHECK(executor.has_value());
  return std::move(*executor);
}

inline std::vector<Isa> Tiers() {
  std::vector<Isa> tiers;
  for (const Isa isa : kIsas) {
    if (Supported(isa)) tiers.push_back(isa);
  }
  return tiers;
}

}  // namespace vivace::testing
