// Scheduler::Commit: what came of a step.
#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace vivace {

void Scheduler::Commit(const StepPlan& plan, const StepResult& result, Effects* effects) {
  VIVACE_CHECK(in_flight_ && plan.step == step_ && result.step == step_);
  effects->Clear();
  in_flight_ = false;
  ObserveTime(plan, result.elapsed_ns);

  for (const StepResult::PromptRows& rows : result.prompt_rows) {
    const PlanItem& item = plan.items[rows.item];
    const Sequence& sequence = *slots_[item.slot.value];
    if (sequence.abort_pending) continue;
    // A row predicts the token after the one it was computed from.
    effects->prompt_rows.push_back({.key = sequence.key,
                                    .first_position = item.first_position + 1,
                                    .first_row = rows.first,
                                    .count = rows.count});
  }

  for (const PooledRow& row : result.pooled) {
    const Sequence& sequence = *slots_[plan.items[row.item].slot.value];
    if (sequence.abort_pending) continue;
    effects->pooled.push_back({.key = sequence.key, .values = row.values});
  }

  size_t next_sampled = 0;
  for (const PlanItem& item : plan.items) {
    const SampledToken* sampled = nullptr;
    if (item.sample) {
      VIVACE_CHECK(next_sampled < result.sampled.size());
      sampled = &result.sampled[next_sampled++];
      VIVACE_CHECK(&plan.items[sampled->item] == &item);
    }
    CommitItem(item, sampled, effects);
  }
}

void Scheduler::ObserveTime(const StepPlan& plan, int64_t elapsed_ns) {
  if (elapsed_ns > 0 && plan.decode_tokens > 0 && plan.prefill_tokens > 0) {
    counters_.mixed_steps += 1;
    counters_.mixed_prompt_tokens += plan.prefill_tokens;
    counters_.mixed_ns += elapsed_ns;
    counters_.mixed_predicted_ns += budget_.predicted_ns();
  }
  budget_.Observe(elapsed_ns);
}

void Scheduler::CommitItem(const PlanItem& item, const SampledToken* sampled, Effects* effects) {
  Sequence* sequence = slots_[item.slot.value];
  VIVACE_CHECK(sequence != nullptr && sequence->planned == item.num_tokens);
  sequence->planned = 0;
  if (sequence->abort_pending) return Retire(sequence);

  Effects::Output output{.key = sequence->key};
  if (sampled != nullptr && sampled->error != SampleError::kNone) {
    // What it computed may be as broken as its logits: nothing of this step becomes findable.
    output.finish = SeqFinish::kError;
    effects->outputs.push_back(output);
    return Retire(sequence);
  }

  sequence->computed += item.num_tokens;
  kv_.Computed(&sequence->kv, sequence->tokens, sequence->computed);
  if (!sequence->prompt_done && sequence->computed >= sequence->prompt_len) {
    sequence->prompt_done = true;
    sequence->wants_prompt_rows = false;
    if (sequence->leads_group) FreeFollowers(*sequence);
    sequence->leads_group = false;
    if (sequence->max_tokens == 0) output.finish = SeqFinish::kLength;
  }
  if (sampled != nullptr) {
    sequence->tokens.push_back(sampled->token);
    output.token = sampled->token;
    output.logprob_row = sampled->logprob_row;
    output.finish = FinishOf(*sequence, sampled->token);
    if (sampled->ends) output.finish = SeqFinish::kStop;
    if (output.finish == SeqFinish::kStop && IsStop(*sequence, sampled->token)) {
      output.stop_token = sampled->token;
    }
  }
  if (output.token >= 0 || output.finish != SeqFinish::kNone) effects->outputs.push_back(output);
  if (output.finish != SeqFinish::kNone) Retire(sequence);
}

bool Scheduler::IsStop(const Sequence& sequence, TokenId token) {
  return std::ranges::find(sequence.stop_ids, token) != sequence.stop_ids.end();
}

// Of a sequence whose last token is `token`. The context's end is in max_tokens (see Add).
SeqFinish Scheduler::FinishOf(const Sequence& sequence, TokenId token) {
  if (sequence.outputs() > sequence.min_tokens && IsStop(sequence, token)) return SeqFinish::kStop;
  return sequence.outputs() == sequence.max_tokens ? SeqFinish::kLength : SeqFinish::kNone;
}

}  // namespace vivace
