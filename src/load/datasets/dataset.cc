#include "load/datasets/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "load/datasets/entries.h"
#include "load/datasets/lengths.h"
#include "load/datasets/makers.h"

namespace vivace::load {
namespace {

template <size_t kPreset>
Result<Workload> MakePreset(const DatasetOptions& options, TokenCounter* counter) {
  DatasetOptions fixed = options;
  fixed.input_len = kLengthPresets[kPreset].input;
  fixed.output_len = kLengthPresets[kPreset].output;
  return MakeRandom(fixed, counter);
}

constexpr DatasetKind kKinds[] = {
    {"random", "ids drawn from the vocabulary, as text of exact lengths", false, MakeRandom},
    {"random-words", "common English words, exact lengths", false, MakeRandomWords},
    {"prefill-heavy", "random, 768 tokens in, 128 out", false, MakePreset<0>},
    {"decode-heavy", "random, 128 tokens in, 768 out", false, MakePreset<1>},
    {"shared-prefix",
     "groups (--num-prefixes) whose prompts share --random-prefix-len tokens (256 if none given)",
     false, MakeSharedPrefix},
    {"multi-turn", "conversations of --turns (3 if none given), each turn after the last answer",
     false, MakeMultiTurn},
    {"sharegpt", "a ShareGPT file: first prompts and the lengths of their answers, vLLM's filter",
     true, MakeShareGpt},
    {"jsonl", "a file of {\"prompt\" or \"messages\", \"output_len\", \"timestamp\" in ms} a line",
     true, MakeJsonl},
    {"custom", "the same as jsonl", true, MakeJsonl},
    {"trace",
     "a trace of {\"timestamp\" in ms, \"input_length\", \"output_length\", \"hash_ids\"} a line "
     "(Mooncake's), or BurstGPT's CSV",
     true, MakeTrace},
};

// Of prompts that are made. Each says whether it was asked for.
struct MadeOnly {
  std::string_view flag;
  bool (*asked)(const DatasetOptions&);
};
constexpr MadeOnly kMadeOnly[] = {
    {"random-input-len", [](const DatasetOptions& o) { return o.input_len_given; }},
    {"input-len-std", [](const DatasetOptions& o) { return o.input_len_std > 0; }},
    {"output-len-std", [](const DatasetOptions& o) { return o.output_len_std > 0; }},
    {"random-range-ratio", [](const DatasetOptions& o) { return o.range_ratio > 0; }},
    {"random-prefix-len", [](const DatasetOptions& o) { return o.prefix_len > 0; }},
    {"num-prefixes", [](const DatasetOptions& o) { return o.num_prefixes > 1; }},
    {"turns", [](const DatasetOptions& o) { return o.turns > 1; }},
};

uint64_t Bytes(const PlannedRequest& request) {
  uint64_t bytes = sizeof(PlannedRequest);
  if (const auto* text = std::get_if<std::string>(&request.prompt)) bytes += text->size();
  if (const auto* ids = std::get_if<PromptIds>(&request.prompt)) bytes += ids->size() * 4;
  if (const auto* messages = std::get_if<Messages>(&request.prompt)) {
    for (const Message& message : *messages) bytes += sizeof(Message) + message.content.size();
  }
  return bytes;
}

Result<const DatasetKind*> FindKind(const DatasetOptions& options) {
  const DatasetKind* kind = std::ranges::find(kKinds, options.name, &DatasetKind::name);
  if (kind == std::end(kKinds)) {
    std::vector<std::string_view> names;
    for (const DatasetKind& k : kKinds) names.push_back(k.name);
    return Fail(ErrorCode::kInvalidArgument, "unknown_dataset", "dataset-name",
                "--dataset-name is '{}'; there are {}", options.name, fmt::join(names, ", "));
  }
  if (!kind->needs_path && !options.path.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "dataset-name",
                "--dataset-path is given and --dataset-name is {}, which reads no file: name its "
                "kind, such as --dataset-name jsonl, sharegpt or trace",
                options.name);
  }
  if (kind->needs_path && options.path.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no_dataset_path", "dataset-path",
                "--dataset-name {} reads a file: name it with --dataset-path", options.name);
  }
  for (const MadeOnly& made : kMadeOnly) {
    if (!kind->needs_path || !made.asked(options)) continue;
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", std::string(made.flag),
                "--{} is for prompts that are made here; --dataset-name {} has its own: leave the "
                "flag out",
                made.flag, options.name);
  }
  VIVACE_RETURN_IF_ERROR(CheckLengths(options));
  return kind;
}

}  // namespace

std::span<const DatasetKind> Datasets() { return kKinds; }

WorkloadBuilder::WorkloadBuilder(std::string name, uint64_t seed) {
  workload_.name = std::move(name);
  workload_.seed = seed;
}

Status WorkloadBuilder::Add(PlannedRequest request) {
  bytes_ += Bytes(request);
  if (bytes_ > limits::kMaxWorkloadBytes) {
    return Fail(ErrorCode::kResourceExhausted, "workload_too_large", "num-prompts",
                "the prompts take more than {} bytes together after {} of them: lower "
                "--num-prompts or the lengths",
                limits::kMaxWorkloadBytes, workload_.requests.size());
  }
  workload_.requests.push_back(std::move(request));
  return {};
}

Workload WorkloadBuilder::Finish(std::string_view remark) {
  workload_.name += remark;
  return std::move(workload_);
}

Result<std::string_view> KindOfFile(const std::string& path) {
  VIVACE_ASSIGN(const EntryFile file, EntryFile::Open(path, 1));
  const auto entry = file.Parse(file.entries().front());
  if (!entry || entry->contains("input_length")) return "trace";
  return entry->contains("conversations") || entry->contains("conversation") ? "sharegpt" : "jsonl";
}

int32_t TurnsOf(const DatasetOptions& options) {
  constexpr int32_t kOfMultiTurn = 3;
  if (options.turns > 1) return options.turns;
  return options.name == "multi-turn" ? kOfMultiTurn : 1;
}

Status CheckDataset(const DatasetOptions& options) {
  VIVACE_ASSIGN([[maybe_unused]] const DatasetKind* kind, FindKind(options));
  return {};
}

Result<Workload> MakeWorkload(const DatasetOptions& options, TokenCounter* counter) {
  VIVACE_ASSIGN(const DatasetKind* kind, FindKind(options));
  return kind->make(options, counter);
}

}  // namespace vivace::load
