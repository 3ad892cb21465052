// An engine that computes nothing: a script says which token each choice gets, and the test turns
// the steps. It keeps the engine's contract (validation, clamping, stop ids, streams, abort).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace vivace::server::testing {

class FakeEngine final : public Engine {
 public:
  // The token at output index `index` of choice `choice`.
  using Script = std::function<TokenId(const GenerationRequest&, int32_t choice, int32_t index)>;

  FakeEngine(int32_t vocab, int32_t max_model_len, std::vector<TokenId> eos_ids)
      : eos_ids_(std::move(eos_ids)) {
    limits_ = {.vocab = vocab,
               .hidden = 4,
               .max_sequences = 64,
               .max_batched_tokens = 512,
               .max_model_len = max_model_len,
               .block_size = 16,
               .num_blocks = 1024};
  }

  Script script;
  FinishReason fail_with = FinishReason::kNone;  // every choice ends so at its next step
  Status refuse;                                 // what Submit answers, if an error
  EngineStats figures;
  // The pooled hidden state of a prompt: [hidden].
  std::function<std::vector<float>(const GenerationRequest&)> pool;

  const ExecutorLimits& limits() const override { return limits_; }
  const EngineConfig& config() const override { return config_; }

  Result<RequestPtr> Submit(GenerationRequest request, void* consumer) override {
    if (!refuse) return tl::unexpected<Error>(refuse.error());
    VIVACE_RETURN_IF_ERROR(Validate(request.sampling, limits_.vocab));
    auto active = std::make_shared<ActiveRequest>(RequestId(next_id_++), std::move(request));
    active->consumer = consumer;
    submitted_.push_back(active);
    Live live{active, std::vector<bool>(active->choices.size(), false)};
    live_.push_back(std::move(live));
    return active;
  }

  void Abort(const RequestPtr& request, int32_t choice) override {
    for (Live& live : live_) {
      if (live.request != request) continue;
      for (size_t i = 0; i < live.ended.size(); ++i) {
        if (choice >= 0 && static_cast<size_t>(choice) != i) continue;
        if (!live.ended[i]) End(&live, i, FinishReason::kAborted, -1);
      }
    }
  }

  void OnReady(std::function<void()> notify) override { notify_ = std::move(notify); }
  void TakeReady(std::vector<RequestPtr>* out) override {
    out->insert(out->end(), ready_.begin(), ready_.end());
    ready_.clear();
  }
  EngineStats stats() const override { return figures; }
  void ResetPrefixCache() override { resets_ += 1; }
  void BeginDrain() override { draining_ = true; }
  void Stop() override {}

  // One token for every choice that runs; false if none does.
  bool Step() {
    bool any = false;
    for (Live& live : live_) {
      for (size_t i = 0; i < live.ended.size(); ++i) {
        if (live.ended[i]) continue;
        any = true;
        Advance(&live, i);
      }
    }
    if (any && notify_) notify_();
    return any;
  }

  // Choices that were not ended.
  int running() const {
    int count = 0;
    for (const Live& live : live_) {
      count += static_cast<int>(std::count(live.ended.begin(), live.ended.end(), false));
    }
    return count;
  }
  const std::vector<RequestPtr>& submitted() const { return submitted_; }
  int resets() const { return resets_; }
  bool draining() const { return draining_; }

  // The log-probabilities of every position: token -0.5, then ids 3, 4, 5, … at -1, -2, -3, ….
  static TokenLogprob Chosen(TokenId token) { return {token, -0.5f}; }

 private:
  struct Live {
    RequestPtr request;
    std::vector<bool> ended;
  };

  static std::vector<TokenLogprob> Top(TokenId token, int32_t count) {
    std::vector<TokenLogprob> top;
    if (count > 0) top.push_back(Chosen(token));
    for (TokenId id = 3; static_cast<int32_t>(top.size()) < count; ++id) {
      if (id != token) top.push_back({id, -static_cast<float>(top.size())});
    }
    return top;
  }

  void FillPrompt(ActiveRequest* request) {
    PromptLogprobs& out = request->prompt_logprobs;
    for (size_t i = 1; i < out.chosen.size(); ++i) {
      out.chosen[i] = Chosen(request->request.prompt[i]);
      const auto top = Top(request->request.prompt[i], out.stride);
      out.num_top[i] = static_cast<int8_t>(top.size());
      out.rank[i] = 1;
      std::copy(top.begin(), top.end(), out.top.begin() + static_cast<ptrdiff_t>(i) * out.stride);
    }
  }

  void Advance(Live* live, size_t i) {
    ActiveRequest& request = *live->request;
    const SamplingParams& sampling = request.request.sampling;
    TokenStream& stream = *request.choices[i];
    if (fail_with == FinishReason::kNone && request.request.pooling != Pooling::kNone) {
      request.pooled = pool(request.request);
      return End(live, i, FinishReason::kLength, -1);
    }
    if (fail_with != FinishReason::kNone) return End(live, i, fail_with, -1);
    if (counts_[&stream] == 0) FillPrompt(&request);
    if (sampling.max_tokens == 0) return End(live, i, FinishReason::kLength, -1);
    const int32_t index = counts_[&stream]++;
    const TokenId token = script(request.request, static_cast<int32_t>(i), index);
    const TokenLogprob chosen = Chosen(token);
    stream.Push(token, &chosen, Top(token, sampling.logprobs));
    const bool eos = !sampling.ignore_eos && Holds(eos_ids_, token);
    if (eos || Holds(sampling.stop_token_ids, token)) {
      End(live, i, FinishReason::kStop, token);
    } else if (index + 1 == sampling.max_tokens) {
      End(live, i, FinishReason::kLength, -1);
    } else {
      Tell(live->request);
    }
  }

  static bool Holds(const std::vector<TokenId>& ids, TokenId token) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  }

  void End(Live* live, size_t i, FinishReason reason, TokenId stop_token) {
    live->ended[i] = true;
    live->request->choices[i]->Finish(reason, stop_token);
    Tell(live->request);
  }

  void Tell(const RequestPtr& request) {
    if (std::find(ready_.begin(), ready_.end(), request) == ready_.end()) ready_.push_back(request);
  }

  const std::vector<TokenId> eos_ids_;
  ExecutorLimits limits_;
  EngineConfig config_;
  std::function<void()> notify_;
  std::vector<RequestPtr> submitted_;
  std::vector<RequestPtr> ready_;
  std::vector<Live> live_;
  std::unordered_map<const TokenStream*, int32_t> counts_;
  uint64_t next_id_ = 1;
  int resets_ = 0;
  bool draining_ = false;
};

}  // namespace vivace::server::testing
