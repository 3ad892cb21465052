#include "sample/sampling_params.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace vivace {
namespace {

struct FloatRange {
  const char* name;
  float value;
  float low;
  float high;
  bool open_low;  // low itself is not allowed
};

tl::unexpected<Error> OutOfRange(const char* name, double value, double low, double high,
                                 bool open_low) {
  return Fail(ErrorCode::kInvalidArgument, "out_of_range", name,
              "{} is {}; give a value {} {} and at most {}", name, value,
              open_low ? "above" : "of at least", low, high);
}

Status CheckIds(const char* name, const std::vector<TokenId>& ids, size_t most, int32_t vocab) {
  if (ids.size() > most) {
    return Fail(ErrorCode::kInvalidArgument, "too_many", name,
                "{} has {} entries; at most {} are allowed", name, ids.size(), most);
  }
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocab) {
      return Fail(ErrorCode::kInvalidArgument, "token_id_range", name,
                  "{} holds token id {}; the vocabulary has ids 0 to {}", name, id, vocab - 1);
    }
  }
  return {};
}

Status CheckBias(const SamplingParams& params, int32_t vocab) {
  std::vector<TokenId> ids;
  for (const auto& [id, bias] : params.logit_bias) {
    ids.push_back(id);
    if (!(std::abs(bias) <= 100.0f)) return OutOfRange("logit_bias", bias, -100, 100, false);
  }
  return CheckIds("logit_bias", ids, limits::kMaxLogitBias, vocab);
}

Status CheckBadWords(const SamplingParams& params, int32_t vocab) {
  constexpr const char* kName = "bad_words";
  if (params.bad_words.size() > limits::kMaxBadWords) {
    return Fail(ErrorCode::kInvalidArgument, "too_many", kName,
                "{} has {} runs of tokens; at most {} are allowed", kName, params.bad_words.size(),
                limits::kMaxBadWords);
  }
  for (const std::vector<TokenId>& word : params.bad_words) {
    if (word.empty()) {
      return Fail(ErrorCode::kInvalidArgument, "out_of_range", kName,
                  "{} holds an empty entry; give at least one token", kName);
    }
    if (word.size() > limits::kMaxBadWordTokens) {
      return Fail(ErrorCode::kInvalidArgument, "too_many", kName,
                  "{} has a word of {} tokens; at most {} are allowed", kName, word.size(),
                  limits::kMaxBadWordTokens);
    }
    VIVACE_RETURN_IF_ERROR(CheckIds(kName, word, limits::kMaxBadWordTokens, vocab));
  }
  return {};
}

}  // namespace

Status Validate(const SamplingParams& params, int32_t vocab) {
  const FloatRange floats[] = {
      {"temperature", params.temperature, 0, 100, false},
      {"top_p", params.top_p, 0, 1, true},
      {"min_p", params.min_p, 0, 1, false},
      {"presence_penalty", params.presence_penalty, -2, 2, false},
      {"frequency_penalty", params.frequency_penalty, -2, 2, false},
      {"repetition_penalty", params.repetition_penalty, 0.01f, 100, false},
  };
  for (const FloatRange& range : floats) {
    const bool above = range.open_low ? range.value > range.low : range.value >= range.low;
    if (!(above && range.value <= range.high)) {  // a NaN fails both
      return OutOfRange(range.name, range.value, range.low, range.high, range.open_low);
    }
  }
  const struct {
    const char* name;
    int32_t value, low, high;
  } ints[] = {
      {"top_k", params.top_k, 0, vocab},
      {"max_tokens", params.max_tokens, 0, INT32_MAX},
      {"min_tokens", params.min_tokens, 0, INT32_MAX},
      {"logprobs", params.logprobs, -1, limits::kMaxTopLogprobs},
      {"prompt_logprobs", params.prompt_logprobs, -1, limits::kMaxTopLogprobs},
  };
  for (const auto& range : ints) {
    if (range.value < range.low || range.value > range.high) {
      return OutOfRange(range.name, range.value, range.low, range.high, false);
    }
  }
  VIVACE_RETURN_IF_ERROR(
      CheckIds("stop_token_ids", params.stop_token_ids, limits::kMaxStopTokenIds, vocab));
  VIVACE_RETURN_IF_ERROR(
      CheckIds("allowed_token_ids", params.allowed_token_ids, limits::kMaxVocab, vocab));
  VIVACE_RETURN_IF_ERROR(CheckBadWords(params, vocab));
  return CheckBias(params, vocab);
}

}  // namespace vivace
