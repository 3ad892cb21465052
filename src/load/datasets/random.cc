// Prompts of given lengths with nothing in common, or with shared prefixes in front.
#include <fmt/format.h>

#include "load/datasets/lengths.h"
#include "load/datasets/makers.h"
#include "load/datasets/prompt_maker.h"

namespace vivace::load {
namespace {

using Vocabulary = PromptMaker::Vocabulary;

Result<std::vector<std::string>> MakePrefixes(const DatasetOptions& options, PromptMaker* maker) {
  std::vector<std::string> prefixes;
  for (int32_t i = 0; i < options.num_prefixes && options.prefix_len > 0; ++i) {
    VIVACE_ASSIGN(PromptMaker::Prompt prefix,
                  maker->Make(kPrefixPurpose + static_cast<uint64_t>(i), options.prefix_len));
    prefixes.push_back(std::move(prefix.text));
  }
  return prefixes;
}

std::string_view PrefixOf(const std::vector<std::string>& prefixes, size_t index) {
  if (prefixes.empty()) return {};
  return prefixes[index % prefixes.size()];
}

Result<Workload> Make(const DatasetOptions& options, TokenCounter* counter, Vocabulary vocabulary,
                      std::string name) {
  if (options.turns > 1) return MakeMultiTurn(options, counter);
  VIVACE_ASSIGN(PromptMaker maker, PromptMaker::Create(options, counter, vocabulary));
  VIVACE_ASSIGN(const std::vector<std::string> prefixes, MakePrefixes(options, &maker));
  name += " " + DescribeLengths(options);
  if (!prefixes.empty()) {
    name += fmt::format(" behind {} shared {} of {}", prefixes.size(),
                        prefixes.size() == 1 ? "prefix" : "prefixes", options.prefix_len);
  }
  WorkloadBuilder builder(std::move(name), options.seed);
  const std::vector<Lengths> lengths = DrawLengths(options, options.num_prompts);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::string_view before = PrefixOf(prefixes, i);
    const int32_t shared = prefixes.empty() ? 0 : options.prefix_len;
    VIVACE_ASSIGN(PromptMaker::Prompt prompt,
                  maker.Make(kPromptPurpose + i, lengths[i].input + shared, before));
    VIVACE_RETURN_IF_ERROR(builder.Add(maker.Plan(std::move(prompt), lengths[i].output)));
  }
  return builder.Finish(maker.Remark());
}

}  // namespace

Result<Workload> MakeRandom(const DatasetOptions& options, TokenCounter* counter) {
  return Make(options, counter, Vocabulary::kAny, "random");
}

Result<Workload> MakeRandomWords(const DatasetOptions& options, TokenCounter* counter) {
  return Make(options, counter, Vocabulary::kWords, "random words");
}

Result<Workload> MakeSharedPrefix(const DatasetOptions& options, TokenCounter* counter) {
  constexpr int32_t kPrefix = 256;  // vLLM's prefix_repetition
  DatasetOptions shared = options;
  if (shared.prefix_len == 0) shared.prefix_len = kPrefix;
  shared.turns = 1;
  return Make(shared, counter, Vocabulary::kWords, "shared-prefix");
}

Result<Workload> MakeMultiTurn(const DatasetOptions& options, TokenCounter* counter) {
  const int32_t turns = TurnsOf(options);
  VIVACE_ASSIGN(PromptMaker maker, PromptMaker::Create(options, counter, Vocabulary::kWords));
  VIVACE_ASSIGN(const std::vector<std::string> prefixes, MakePrefixes(options, &maker));
  WorkloadBuilder builder(
      fmt::format("multi-turn, {} turns of {}", turns, DescribeLengths(options)), options.seed);
  const std::vector<Lengths> lengths = DrawLengths(options, options.num_prompts);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t conversation = i / static_cast<size_t>(turns);
    const bool first = i % static_cast<size_t>(turns) == 0;
    const bool prefixed = first && !prefixes.empty();
    VIVACE_ASSIGN(
        PromptMaker::Prompt prompt,
        maker.Make(kPromptPurpose + i, lengths[i].input + (prefixed ? options.prefix_len : 0),
                   prefixed ? PrefixOf(prefixes, conversation) : std::string_view()));
    // What comes before it depends on the server's answers.
    if (!first) prompt.tokens = 0;
    PlannedRequest request = maker.Plan(std::move(prompt), lengths[i].output);
    request.conversation = static_cast<int32_t>(conversation);
    VIVACE_RETURN_IF_ERROR(builder.Add(std::move(request)));
  }
  return builder.Finish(maker.Remark());
}

}  // namespace vivace::load
