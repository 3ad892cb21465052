#include "engine/request.h"

#include <algorithm>

#include "base/check.h"

namespace vivace {

TokenStream::TokenStream(int32_t max_tokens, int32_t top) : top_stride_(std::max(top, 0)) {
  tokens_.resize(static_cast<size_t>(max_tokens));
  if (top < 0) return;
  chosen_.resize(tokens_.size());
  num_top_.resize(tokens_.size());
  top_.resize(tokens_.size() * static_cast<size_t>(top_stride_));
}

void TokenStream::Push(TokenId token, const TokenLogprob* chosen,
                       std::span<const TokenLogprob> top) {
  const auto i = static_cast<size_t>(pushed_);
  VIVACE_CHECK(i < tokens_.size());
  tokens_[i] = token;
  if (!chosen_.empty() && chosen != nullptr) {
    chosen_[i] = *chosen;
    const size_t n = std::min(top.size(), static_cast<size_t>(top_stride_));
    num_top_[i] = static_cast<int8_t>(n);
    std::copy_n(top.begin(), n, top_.begin() + static_cast<ptrdiff_t>(i) * top_stride_);
  }
  published_.store(++pushed_, std::memory_order_release);
}

void TokenStream::Finish(FinishReason reason, TokenId stop_token) {
  stop_token_ = stop_token;
  finish_.store(reason, std::memory_order_release);
}

std::span<const TokenId> TokenStream::Read() {
  const int32_t published = published_.load(std::memory_order_acquire);
  const auto news = std::span(tokens_).subspan(static_cast<size_t>(read_),
                                               static_cast<size_t>(published - read_));
  read_ = published;
  return news;
}

TokenLogprob TokenStream::chosen(int32_t i) const { return chosen_[static_cast<size_t>(i)]; }

std::span<const TokenLogprob> TokenStream::top(int32_t i) const {
  const auto at = static_cast<size_t>(i);
  return std::span(top_).subspan(at * static_cast<size_t>(top_stride_),
                                 static_cast<size_t>(num_top_[at]));
}

FinishReason TokenStream::finish_reason() const {
  const FinishReason reason = finish_.load(std::memory_order_acquire);
  return read_ == published_.load(std::memory_order_acquire) ? reason : FinishReason::kNone;
}

ActiveRequest::ActiveRequest(RequestId id_in, GenerationRequest request_in)
    : id(id_in), request(std::move(request_in)), abort(static_cast<size_t>(request.num_choices)) {
  const SamplingParams& sampling = request.sampling;
  for (int32_t i = 0; i < request.num_choices; ++i) {
    choices.push_back(std::make_unique<TokenStream>(sampling.max_tokens, sampling.logprobs));
  }
  if (sampling.prompt_logprobs < 0) return;
  prompt_logprobs.stride = sampling.prompt_logprobs;
  prompt_logprobs.chosen.resize(request.prompt.size());
  prompt_logprobs.num_top.resize(request.prompt.size());
  prompt_logprobs.rank.resize(request.prompt.size());
  prompt_logprobs.top.resize(request.prompt.size() * static_cast<size_t>(prompt_logprobs.stride));
}

}  // namespace vivace
