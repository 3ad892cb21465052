#include "sim/workload.h"

#include <algorithm>

namespace vivace::sim {
namespace {

class FourBitHasher final : public BlockHasher {
 public:
  BlockHash Hash(const BlockHash& parent, std::span<const TokenId> tokens) override {
    BlockHash weak{};
    weak[0] = sha256_.Hash(parent, tokens)[0] & 15;
    return weak;
  }

 private:
  Sha256Hasher sha256_;
};

// The beginning of one of a few texts, then perhaps something of its own.
std::vector<TokenId> RandomPrompt(int32_t length, Random* random) {
  const int32_t text = random->Between(0, 3);
  const int32_t shared = random->Percent(70) ? length : random->Between(0, length);
  std::vector<TokenId> prompt;
  for (int32_t i = 0; i < length; ++i) {
    prompt.push_back(i < shared ? (i * i + text * (i / 5)) % kVocab
                                : random->Between(0, kVocab - 1));
  }
  return prompt;
}

// Mostly full attention alone; else with windows beside it, or only those.
KvWindows RandomWindows(Random* random) {
  const auto window = [random] { return random->Between(1, random->Percent(50) ? 6 : 40); };
  switch (random->Between(1, 10)) {
    case 1:
      return {window()};
    case 2:
    case 3:
      return {0, window()};
    case 4: {
      const int32_t shared = window();
      return {0, shared, shared, shared};
    }
    case 5:
      return {0, 0, window(), window()};
    default:
      return {};
  }
}

}  // namespace

SchedulerConfig RandomConfig(Random* random) {
  SchedulerConfig config;
  config.kv.block_size = random->Of<int32_t>({1, 2, 3, 4, 8, 16});
  config.kv.num_blocks = random->Between(2, random->Percent(50) ? 12 : 48);
  config.kv.enable_prefix_caching = random->Percent(85);
  config.max_num_seqs = random->Between(1, 8);
  config.max_num_batched_tokens = random->Of<int32_t>({1, 2, 3, 5, 17, 64});
  config.max_model_len = random->Between(2, 96);
  if (random->Percent(50)) config.max_itl_ns = int64_t{random->Between(1, 60)} * 1'000'000;
  if (random->Percent(5)) {  // so many blocks that 1 % of them is some
    config.kv.block_size = 1;
    config.kv.num_blocks = random->Between(100, 220);
    config.max_model_len = config.kv.num_blocks;
  }
  config.kv.windows = RandomWindows(random);
  const int32_t groups = config.kv.windows.size();
  config.kv.num_blocks =
      std::max(config.kv.num_blocks * random->Between(1, groups), groups);  // one token fits
  return config;
}

std::unique_ptr<BlockHasher> RandomHasher(Random* random) {
  if (random->Percent(30)) return std::make_unique<FourBitHasher>();
  return std::make_unique<Sha256Hasher>();
}

std::vector<SequenceSpec> RandomRequest(const SchedulerConfig& config,
                                        const std::vector<std::vector<TokenId>>& texts,
                                        Random* random, uint64_t group, SeqKey* next_key) {
  SequenceSpec spec;
  const auto room = static_cast<int32_t>(
      LongestSequence(config.kv.windows, config.kv.block_size, config.kv.num_blocks,
                      config.max_num_batched_tokens, config.max_model_len));
  if (!texts.empty() && random->Percent(25)) {
    spec.prompt = random->Of(texts);
    spec.prompt.resize(std::min(spec.prompt.size(), static_cast<size_t>(room)));
  } else {
    spec.prompt =
        RandomPrompt(random->Between(1, random->Percent(30) ? room : std::min(room, 24)), random);
  }
  const int32_t length = static_cast<int32_t>(spec.prompt.size());
  // Often more than fits the context, to meet its end; cut until it can run.
  spec.max_tokens = random->Percent(8) ? 0 : random->Between(1, 40);
  while (!Scheduler::CanEverFit(config, length, spec.max_tokens)) --spec.max_tokens;
  spec.group = group;
  spec.priority = random->Percent(25) ? random->Between(-1, 1) : 0;
  spec.min_tokens = random->Percent(20) ? random->Between(1, 6) : 0;
  const int32_t num_stops = random->Percent(40) ? random->Between(1, 2) : 0;
  for (int32_t i = 0; i < num_stops; ++i) spec.stop_ids.push_back(random->Between(0, kVocab - 1));
  if (random->Percent(30)) spec.salt.push_back(random->Percent(50) ? 'a' : 'b');
  spec.seed = random->Percent(50) ? 0 : random->Word();
  if (random->Percent(6)) spec.error_at = random->Between(0, 4);
  if (random->Percent(25)) {
    spec.forced_every = random->Between(1, 4);
    spec.num_forced = random->Between(1, 20);
  }

  const bool prompt_logprobs = random->Percent(15);
  const int32_t num_choices = random->Percent(20) ? random->Between(2, 5) : 1;
  std::vector<SequenceSpec> choices;
  for (int32_t choice = 0; choice < num_choices; ++choice) {
    spec.key = (*next_key)++;
    spec.choice = choice;
    spec.prompt_logprobs = prompt_logprobs && choice == 0;
    choices.push_back(spec);
  }
  return choices;
}

}  // namespace vivace::sim
