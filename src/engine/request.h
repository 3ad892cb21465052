// A request as the engine takes it, and the channel its tokens come back through.
//
// Life: the front end makes an ActiveRequest (any thread; this allocates all a request ever needs),
// Engine::Submit hands it over, the engine thread publishes tokens into its streams, one consumer
// thread reads them. It is shared by both and freed by the last. On the way in and out it stands on
// an MpscList, so news never queue up: a slow consumer finds more of them in the same streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/mpsc_list.h"
#include "engine/timeline.h"
#include "sample/sampling_params.h"
#include "sample/token_constraint.h"
#include "sched/step_plan.h"

namespace vivace {

struct GenerationRequest {
  std::vector<TokenId> prompt;  // not empty, each < vocab
  SamplingParams sampling;
  int32_t num_choices = 1;
  // An embedding of the prompt instead of an answer: one choice, no token is sampled.
  Pooling pooling = Pooling::kNone;
  int32_t priority = 0;    // lower is sooner, then first come first served
  std::string cache_salt;  // prefix blocks are shared only under the same salt
  // Steady clock: what has not ended by then ends with kDeadline, between two steps. 0: never.
  int64_t deadline_ns = 0;
  // Ends with kQueueTimeout if it was not scheduled within this time of its submission. 0: it
  // waits.
  int64_t max_queue_ns = 0;
  // One of several prompts that are asked for together, behind the first: what let that one in lets
  // this one in, whatever waits.
  bool follows = false;
  // What each choice may say: one for each, which may be null; or none at all. The engine's own
  // until the choice has finished; then the consumer may ask them what became of it.
  std::vector<std::unique_ptr<TokenConstraint>> constraints;

  TokenConstraint* constraint(int32_t choice) const {
    const auto i = static_cast<size_t>(choice);
    return i < constraints.size() ? constraints[i].get() : nullptr;
  }
};

enum class FinishReason : uint8_t {
  kNone,          // still running
  kStop,          // EOS, a stop id, a constraint's end, or (decided by the consumer) a stop string
  kLength,        // max_tokens or the context's end
  kAborted,       // by Abort
  kDeadline,      // GenerationRequest::deadline_ns passed
  kQueueTimeout,  // it waited for max_queue_ns
  kError,  // non-finite logits, a broken or too costly constraint, or the engine is going away
};

// The tokens of one choice. Single producer (engine thread), single consumer; capacity is fixed at
// creation, so publishing never allocates, never blocks and never drops: a slow consumer finds more
// tokens next time.
class TokenStream {
 public:
  // `max_tokens` of output; `top` alternatives per token when log-probabilities are wanted (-1:
  // no).
  TokenStream(int32_t max_tokens, int32_t top);

  // Engine thread.
  void Push(TokenId token, const TokenLogprob* chosen, std::span<const TokenLogprob> top);
  void Finish(FinishReason reason, TokenId stop_token);
  int32_t pushed() const { return pushed_; }

  // Consumer. Tokens published since the last call.
  std::span<const TokenId> Read();
  int32_t tokens_read() const { return read_; }
  // Of the token with output index i < tokens_read(); only when log-probabilities were asked for.
  TokenLogprob chosen(int32_t i) const;
  std::span<const TokenLogprob> top(int32_t i) const;
  // kNone until the producer finished AND every token was read.
  FinishReason finish_reason() const;
  // The EOS or stop id that ended it, or -1, as when a constraint's output is complete. It was
  // published as the last token, and counts as one; its text is not part of the answer.
  TokenId stop_token() const { return stop_token_; }

 private:
  std::vector<TokenId> tokens_;
  std::vector<TokenLogprob> chosen_;
  std::vector<TokenLogprob> top_;  // [max_tokens, top_stride_]
  std::vector<int8_t> num_top_;
  int32_t top_stride_ = 0;
  int32_t pushed_ = 0;  // producer's
  int32_t read_ = 0;    // consumer's
  TokenId stop_token_ = -1;
  std::atomic<int32_t> published_{0};
  std::atomic<FinishReason> finish_{FinishReason::kNone};
};

// Log-probabilities of the prompt's tokens, filled while it is computed; complete once any choice
// has published a token or finished.
struct PromptLogprobs {
  std::vector<TokenLogprob> chosen;  // [prompt]; entry 0 has no value
  std::vector<TokenLogprob> top;     // [prompt, stride]
  std::vector<int8_t> num_top;
  std::vector<int32_t> rank;  // of `chosen`, 1 = most likely
  int32_t stride = 0;
};

// Times of one request, steady clock; zero until it happened.
struct RequestTimes {
  std::atomic<int64_t> arrived_ns{0};
  std::atomic<int64_t> scheduled_ns{0};  // first time in a plan
  std::atomic<int64_t> first_token_ns{0};
  std::atomic<int64_t> finished_ns{0};
};

class ActiveRequest {
 public:
  ActiveRequest(RequestId id, GenerationRequest request);

  const RequestId id;
  const GenerationRequest request;
  std::vector<std::unique_ptr<TokenStream>> choices;
  PromptLogprobs prompt_logprobs;
  std::vector<float> pooled;  // [hidden]; complete once the choice has finished with kLength
  RequestTimes times;
  Timeline timeline;
  // Prompt tokens found in the prefix cache at first schedule.
  std::atomic<int32_t> cached_tokens{0};
  std::atomic<int32_t> preemptions{0};

  void* consumer = nullptr;  // the consumer's own; never touched by the engine

  // The engine's own.
  MpscHook<ActiveRequest> inbox_hook;    // on its way to the engine thread
  MpscHook<ActiveRequest> ready_hook;    // has news for the consumer
  std::vector<std::atomic<bool>> abort;  // per choice: asked for by any thread
  int32_t open_choices = 0;              // engine thread: not finished yet
  std::vector<uint64_t> keys;            // engine thread: the scheduler's name per choice; empty
                                         // until it was added
};

using RequestPtr = std::shared_ptr<ActiveRequest>;

}  // namespace vivace
