// A trace of arrivals and lengths without texts: Mooncake's JSON lines, whose hash ids say which
// blocks of 512 tokens prompts share, or BurstGPT's CSV. Texts are made: equal blocks get equal
// words, so that a server's prefix cache finds what it would have found.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/limits.h"
#include "base/rng.h"
#include "load/datasets/entries.h"
#include "load/datasets/makers.h"
#include "load/datasets/prompt_maker.h"
#include "load/datasets/words.h"

namespace vivace::load {
namespace {

constexpr int32_t kBlockTokens = 512;  // Mooncake's
constexpr double kMostSeconds = 1e9;

struct Arrival {
  double at_s = 0;
  int32_t input = 0, output = 0;
  std::vector<int64_t> blocks;
};

Result<std::vector<int64_t>> ReadBlocks(const EntryFile& file, const Entry& entry,
                                        const boost::json::object& object) {
  std::vector<int64_t> blocks;
  const boost::json::value* ids = object.if_contains("hash_ids");
  if (ids == nullptr || ids->is_null()) return blocks;
  if (!ids->is_array() || ids->get_array().size() > limits::kMaxTraceHashIds) {
    return file.Broken(entry, "\"hash_ids\" is not an array of at most {} numbers",
                       limits::kMaxTraceHashIds);
  }
  for (const boost::json::value& id : ids->get_array()) {
    if (!id.is_int64()) return file.Broken(entry, "\"hash_ids\" has something that is no number");
    blocks.push_back(id.get_int64());
  }
  return blocks;
}

Result<Arrival> ReadLine(const EntryFile& file, const Entry& entry, const DatasetOptions& options) {
  VIVACE_ASSIGN(const boost::json::object object, file.Parse(entry));
  Arrival arrival;
  VIVACE_ASSIGN(const auto at_ms, file.Number(entry, object, "timestamp", 0, kMostSeconds * 1e3));
  VIVACE_ASSIGN(const auto input,
                file.Count(entry, object, "input_length", 1, limits::kMaxPromptTokens));
  VIVACE_ASSIGN(const auto output,
                file.Count(entry, object, "output_length", 1, limits::kMaxPromptTokens));
  if (!at_ms || !input || !(output || options.output_len_given)) {
    return file.Broken(entry, "it lacks \"timestamp\", \"input_length\" or \"output_length\"");
  }
  arrival.at_s = *at_ms / 1e3;
  arrival.input = static_cast<int32_t>(*input);
  arrival.output = options.output_len_given ? options.output_len : static_cast<int32_t>(*output);
  VIVACE_ASSIGN(arrival.blocks, ReadBlocks(file, entry, object));
  return arrival;
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == line.npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

// BurstGPT: Timestamp (s), Model, Request tokens, Response tokens, ... Failed requests have 0
// response tokens there and are left out.
class CsvColumns {
 public:
  static std::optional<CsvColumns> Find(std::string_view header) {
    CsvColumns columns;
    const auto names = Fields(header);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "Timestamp") columns.at_ = i;
      if (names[i] == "Request tokens") columns.input_ = i;
      if (names[i] == "Response tokens") columns.output_ = i;
    }
    if (columns.at_ == kNone || columns.input_ == kNone || columns.output_ == kNone) return {};
    return columns;
  }

  Result<std::optional<Arrival>> Read(const EntryFile& file, const Entry& entry) const {
    const auto fields = Fields(entry.text);
    const auto number = [&](size_t column) {
      return column < fields.size() ? ParseNumber(fields[column]) : std::nullopt;
    };
    const auto at = number(at_), input = number(input_), output = number(output_);
    if (!at || !input || !output) {
      return file.Broken(entry, "not the numbers that the header promises");
    }
    constexpr double kMost = limits::kMaxPromptTokens;
    if (*at < 0 || *at > kMostSeconds || *input < 0 || *input > kMost || *output < 0 ||
        *output > kMost) {
      return file.Broken(entry, "a time or a length is out of range");
    }
    if (*input < 1 || *output < 1) return std::nullopt;
    return Arrival{*at, static_cast<int32_t>(*input), static_cast<int32_t>(*output), {}};
  }

 private:
  static constexpr size_t kNone = ~size_t{0};
  size_t at_ = kNone, input_ = kNone, output_ = kNone;
};

Result<std::vector<Arrival>> ReadArrivals(const DatasetOptions& options) {
  VIVACE_ASSIGN(const EntryFile file, EntryFile::Open(options.path, limits::kMaxDatasetRequests));
  const auto columns = CsvColumns::Find(file.entries().front().text);
  std::vector<Arrival> arrivals;
  for (const Entry& entry : file.entries()) {
    if (arrivals.size() == options.num_prompts) break;
    std::optional<Arrival> arrival;
    if (!columns) {
      VIVACE_ASSIGN(arrival, ReadLine(file, entry, options));
    } else if (&entry != &file.entries().front()) {
      VIVACE_ASSIGN(arrival, columns->Read(file, entry));
      if (arrival && options.output_len_given) arrival->output = options.output_len;
    }
    if (!arrival) continue;
    if (!arrivals.empty() && arrival->at_s < arrivals.back().at_s) {
      return file.Broken(entry, "its time is before the line's above: sort the file");
    }
    arrivals.push_back(std::move(*arrival));
  }
  if (arrivals.empty()) {
    return Fail(ErrorCode::kCorruptData, "no_usable_entries", "dataset-path",
                "{} has no requests with tokens in and out", options.path);
  }
  return arrivals;
}

// A stream of its own for each hash id, whatever its number.
uint64_t BlockPurpose(int64_t id) {
  const auto bits = static_cast<uint64_t>(id);
  const auto words =
      Philox(kBlockPurpose, {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0, 0});
  return uint64_t{words[0]} << 32 | words[1];
}

class TextMaker {
 public:
  TextMaker(const DatasetOptions& options, PromptMaker* maker)
      : seed_(options.seed), maker_(maker) {}

  // All blocks but the last are whole; the end is drawn by the last block's id, so that equal lists
  // give equal prompts.
  Result<PromptMaker::Prompt> Make(const Arrival& arrival, size_t index) {
    if (arrival.blocks.empty()) return maker_->Make(kPromptPurpose + index, arrival.input);
    VIVACE_ASSIGN(const size_t words, maker_->WordsFor(kBlockTokens));
    const auto whole = std::min(arrival.blocks.size() - 1,
                                static_cast<size_t>((arrival.input - 1) / kBlockTokens));
    std::string before;
    for (size_t i = 0; i < whole; ++i) {
      Random random(seed_, BlockPurpose(arrival.blocks[i]));
      if (i > 0) before += ' ';
      before += DrawWords(words, &random);
    }
    return maker_->Make(BlockPurpose(arrival.blocks.back()) + 1, arrival.input, before);
  }

 private:
  uint64_t seed_;
  PromptMaker* maker_;
};

}  // namespace

Result<Workload> MakeTrace(const DatasetOptions& options, TokenCounter* counter) {
  VIVACE_ASSIGN(const std::vector<Arrival> arrivals, ReadArrivals(options));
  VIVACE_ASSIGN(PromptMaker maker,
                PromptMaker::Create(options, counter, PromptMaker::Vocabulary::kWords));
  TextMaker texts(options, &maker);
  WorkloadBuilder builder("trace " + std::filesystem::path(options.path).filename().string(),
                          options.seed);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    VIVACE_ASSIGN(PromptMaker::Prompt prompt, texts.Make(arrivals[i], i));
    PlannedRequest request = maker.Plan(std::move(prompt), arrivals[i].output);
    request.at_s = arrivals[i].at_s - arrivals[0].at_s;
    VIVACE_RETURN_IF_ERROR(builder.Add(std::move(request)));
  }
  return builder.Finish(maker.Remark());
}

}  // namespace vivace::load
