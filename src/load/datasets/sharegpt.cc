// A ShareGPT file as vLLM's benchmark reads one: the first message of a conversation is the prompt,
// the length of the second is the output's; conversations of fewer than two messages and very short
// or long ones are left out.
#include <fmt/format.h>

#include <numeric>

#include "base/limits.h"
#include "load/datasets/entries.h"
#include "load/datasets/makers.h"
#include "load/datasets/prompt_maker.h"
#include "load/random.h"

namespace vivace::load {
namespace {

// vLLM's is_valid_sequence.
constexpr int64_t kLeastTokens = 4, kMostPromptTokens = 1'024, kMostTokens = 2'048;

struct Exchange {
  std::string prompt, answer;
};

// Nothing: a conversation that is too short.
Result<std::optional<Exchange>> ReadExchange(const EntryFile& file, const Entry& entry) {
  VIVACE_ASSIGN(const boost::json::object object, file.Parse(entry));
  const boost::json::value* turns = object.if_contains("conversations");
  if (turns == nullptr) turns = object.if_contains("conversation");
  if (turns == nullptr || !turns->is_array()) {
    return file.Broken(entry, "no \"conversations\" array: is this a ShareGPT file?");
  }
  if (turns->get_array().size() < 2) return std::nullopt;
  std::string texts[2];
  for (size_t i = 0; i < 2; ++i) {
    const boost::json::value& turn = turns->get_array()[i];
    const boost::json::value* value =
        turn.is_object() ? turn.get_object().if_contains("value") : nullptr;
    if (value == nullptr || !value->is_string()) {
      return file.Broken(entry, "message {} has no text \"value\"", i + 1);
    }
    texts[i] = std::string(value->get_string());
  }
  return Exchange{std::move(texts[0]), std::move(texts[1])};
}

bool Fits(int64_t prompt, int64_t output, bool output_given) {
  return prompt >= kLeastTokens && prompt <= kMostPromptTokens &&
         (output_given || output >= kLeastTokens) && prompt + output <= kMostTokens;
}

std::vector<size_t> Shuffled(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(seed, kShufflePurpose);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

// Of the texts alone: a template around the prompt is no reason to leave an exchange out.
struct Counts {
  int32_t prompt = 0, output = 0;
};

Result<Counts> CountTokens(const Exchange& exchange, const DatasetOptions& options,
                           PromptMaker* maker) {
  Counts counts{.output = options.output_len};
  VIVACE_ASSIGN(counts.prompt, maker->OwnTokens(exchange.prompt));
  if (!options.output_len_given) {
    VIVACE_ASSIGN(counts.output, maker->OwnTokens(exchange.answer));
  }
  return counts;
}

}  // namespace

Result<Workload> MakeShareGpt(const DatasetOptions& options, TokenCounter* counter) {
  DatasetOptions texts = options;
  texts.token_ids = options.token_ids && counter != nullptr;
  VIVACE_ASSIGN(PromptMaker maker,
                PromptMaker::Create(texts, counter, PromptMaker::Vocabulary::kWords));
  VIVACE_ASSIGN(const EntryFile file, EntryFile::Open(options.path, limits::kMaxDatasetRequests));
  WorkloadBuilder builder("sharegpt", options.seed);
  for (size_t index : Shuffled(file.entries().size(), options.seed)) {
    if (builder.size() == options.num_prompts) break;
    const Entry& entry = file.entries()[index];
    VIVACE_ASSIGN(std::optional<Exchange> exchange, ReadExchange(file, entry));
    if (!exchange) continue;
    VIVACE_ASSIGN(const Counts counts, CountTokens(*exchange, options, &maker));
    if (!Fits(counts.prompt, counts.output, options.output_len_given)) continue;
    PromptMaker::Prompt prompt{
        .text = std::move(exchange->prompt), .ids = {}, .tokens = counts.prompt + maker.around()};
    if (texts.token_ids && !options.chat) {
      VIVACE_ASSIGN(prompt.ids, counter->Encode(prompt.text));
    }
    VIVACE_RETURN_IF_ERROR(builder.Add(maker.Plan(std::move(prompt), counts.output)));
  }
  if (builder.size() == 0) {
    return Fail(
        ErrorCode::kCorruptData, "no_usable_entries", "dataset-path",
        "{}: none of its {} conversations has two messages, a prompt of {} to {} tokens and "
        "at most {} tokens in all",
        options.path, file.entries().size(), kLeastTokens, kMostPromptTokens, kMostTokens);
  }
  return builder.Finish(maker.Remark());
}

}  // namespace vivace::load
