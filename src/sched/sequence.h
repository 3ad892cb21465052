// One choice of one request, as the scheduler keeps it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kv/kv_cache_manager.h"
#include "sched/step_plan.h"

namespace vivace {

// The engine's name for a sequence; unique among those alive.
using SeqKey = uint64_t;

// What the engine hands over. Everything is copied by Scheduler::Add.
struct NewSequence {
  SeqKey key = 0;
  uint64_t group = 0;                 // the request: its choices share the prompt
  int32_t choice = 0;                 // choices of a group are added in this order
  int32_t priority = 0;               // lower is sooner
  std::span<const TokenId> prompt;    // not empty
  int32_t max_tokens = 0;             // 0: ends with the prompt, samples nothing
  int32_t min_tokens = 0;             // this many tokens cannot stop it by their id
  std::span<const TokenId> stop_ids;  // EOS ids (unless ignored) and stop_token_ids
  std::string_view cache_salt;
  std::string_view adapter;
  bool prompt_logprobs = false;      // ask for one choice of a group only: rows are equal
  Pooling pooling = Pooling::kNone;  // of the prompt; then max_tokens is 0
};

// Fields are the scheduler's own; other code sees sequences by key and slot.
struct Sequence {
  SeqKey key = 0;
  uint64_t group = 0;
  int32_t choice = 0;
  int32_t priority = 0;
  uint64_t arrival = 0;  // order of Add

  std::vector<TokenId> tokens;  // prompt, then output; reserved for all of it
  std::vector<TokenId> stop_ids;
  int32_t prompt_len = 0;
  int32_t max_tokens = 0;
  int32_t min_tokens = 0;
  int32_t max_len = 0;  // tokens that may ever be computed

  KvSequence kv;
  SeqSlot slot;                    // valid while running
  int32_t computed = 0;            // tokens whose KV is in place
  int32_t started_with = 0;        // tokens it had when it took its slot
  int32_t planned = 0;             // tokens of the step in flight
  bool wants_prompt_rows = false;  // until the last of them was delivered
  Pooling pooling = Pooling::kNone;
  bool scheduled_before = false;
  bool prompt_done = false;       // was computed once
  bool waits_for_leader = false;  // until an earlier choice has computed the prompt
  bool leads_group = false;       // others wait for this one
  bool abort_pending = false;     // aborted while its step is in flight

  int32_t length() const { return static_cast<int32_t>(tokens.size()); }
  int32_t outputs() const { return length() - prompt_len; }
  int32_t remaining() const { return length() - computed; }
  // One token to feed, and that one was sampled.
  bool decoding() const { return computed >= prompt_len && remaining() == 1; }
  // Past what it started with: it feeds output, sampled or appended, and its blocks grow.
  bool continues() const { return computed >= started_with || decoding(); }
};

// The policy: who goes first when there is not enough for all, and who is preempted last.
inline bool Before(const Sequence& a, const Sequence& b) {
  return a.priority != b.priority ? a.priority < b.priority : a.arrival < b.arrival;
}

}  // namespace vivace
