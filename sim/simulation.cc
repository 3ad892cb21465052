#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sched/scheduler.h"
#include "sim/fake_model.h"
#include "sim/step_timer.h"
#include "sim/workload.h"

namespace vivace::sim {
namespace {

// What the simulation knows of a sequence, kept apart from the scheduler's own books.
struct Tracked {
  SequenceSpec spec;
  ExpectedOutput expected;
  std::vector<TokenId> tokens;  // prompt and output so far
  std::vector<bool> rows_seen;  // by prompt position
  uint64_t arrival = 0;
  int32_t computed = 0;  // only meaningful while running
  int32_t room = 0;      // tokens its blocks were taken for; the same
  bool running = false;
  bool ended = false;  // finished or aborted
  bool prompt_done = false;

  int32_t outputs() const { return static_cast<int32_t>(tokens.size() - spec.prompt.size()); }
  bool Before(const Tracked& other) const {
    return spec.priority != other.spec.priority ? spec.priority < other.spec.priority
                                                : arrival < other.arrival;
  }
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed)
      : random_(seed),
        config_(RandomConfig(&random_)),
        scheduler_(config_, RandomHasher(&random_)),
        model_(config_.kv, std::min(config_.max_num_seqs, config_.max_num_batched_tokens)),
        timer_(RandomSpeed(&random_), seed),
        requests_left_(random_.Between(1, 25)),
        arrival_percent_(random_.Of<int32_t>({5, 20, 60, 100})),
        abort_percent_(random_.Of<int32_t>({0, 2, 10})) {
    scheduler_.Reserve(&plan_, &changes_, &effects_);
  }

  SimulationReport Run();

 private:
  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    if (!report_.failure.empty()) return;  // the first one counts
    report_.failure =
        fmt::format("step {}: ", report_.steps) + fmt::format(format, std::forward<Args>(args)...);
  }
  bool failed() const { return !report_.failure.empty(); }

  void RandomEvents();
  void Arrive();
  void AbortSome();
  void Step();
  void ApplyChanges();
  void CheckBound(const PlanChanges::Bound& bound);
  void CheckPreemptions(int64_t used_before);
  void CheckOrder();
  void CheckPlan();
  void CheckItem(const PlanItem& item);
  void CheckFence();
  void CheckEffects();
  void CheckOutput(const Effects::Output& output);
  void CheckToken(Tracked* tracked, TokenId token);
  void Force(Tracked* tracked);
  int64_t GrownBlocks();
  void CheckRows(const Effects::PromptRows& rows);
  void CheckGauges();
  void CheckEnd();
  bool WaitsForLeader(const Tracked& tracked) const;
  const PlanItem* ItemOf(SeqSlot slot) const;
  BlockId BlockOf(const PlanItem& item, int32_t group, int32_t block) const {
    return plan_.block_ids[item.first_block + group * item.num_blocks + block];
  }
  Tracked* Find(SeqKey key);

  Random random_;
  SchedulerConfig config_;
  Scheduler scheduler_;
  FakeModel model_;
  StepTimer timer_;
  StepPlan plan_;
  PlanChanges changes_;
  StepResult result_;
  Effects effects_;

  std::set<int32_t> written_;  // blocks, by the step at hand
  std::vector<std::vector<TokenId>> texts_;
  std::map<SeqKey, Tracked> sequences_;  // all that ever came
  SeqKey next_key_ = 1;
  uint64_t next_group_ = 1;
  int32_t requests_left_;
  int32_t arrival_percent_;
  int32_t abort_percent_;
  int64_t work_ = 0;  // tokens of all sequences, for the bound on steps
  int64_t preempted_ = 0;
  int64_t hits_ = 0;
  int64_t queries_ = 0;
  SimulationReport report_;
};

SimulationReport Simulation::Run() {
  while (!failed() && (requests_left_ > 0 || !scheduler_.idle())) {
    RandomEvents();
    Step();
    ++report_.steps;
    // I6 says that each step computes something; a preemption can throw all of a sequence away, but
    // only for the good of an earlier one.
    const int64_t bound = 1000 + 20 * work_ + 10 * static_cast<int64_t>(sequences_.size()) * work_;
    if (report_.steps > bound) Fail("still not done: something starves");
  }
  if (!failed()) CheckEnd();
  report_.sequences = static_cast<int64_t>(sequences_.size());
  report_.preemptions = preempted_;
  report_.prefix_hits = hits_;
  return report_;
}

void Simulation::RandomEvents() {
  while (requests_left_ > 0 && random_.Percent(arrival_percent_)) {
    Arrive();
    if (arrival_percent_ == 100 && random_.Percent(50)) break;
  }
  if (random_.Percent(abort_percent_)) AbortSome();
  if (random_.Percent(1)) scheduler_.ResetPrefixCache();
  if (auto broken = scheduler_.CheckInvariants(); !broken.empty()) Fail("{}", broken);
}

void Simulation::Arrive() {
  --requests_left_;
  for (SequenceSpec& spec : RandomRequest(config_, texts_, &random_, next_group_, &next_key_)) {
    Tracked& tracked = sequences_[spec.key];
    tracked.spec = std::move(spec);
    tracked.expected = OutputAlone(tracked.spec, config_.max_model_len, config_.kv.windows);
    tracked.tokens = tracked.spec.prompt;
    tracked.rows_seen.assign(tracked.spec.prompt.size(), false);
    tracked.arrival = tracked.spec.key;
    work_ += static_cast<int64_t>(tracked.tokens.size() + tracked.expected.tokens.size());
    texts_.push_back(tracked.spec.prompt);
    texts_.back().insert(texts_.back().end(), tracked.expected.tokens.begin(),
                         tracked.expected.tokens.end());
    const SequenceSpec& s = tracked.spec;
    scheduler_.Add({.key = s.key,
                    .group = s.group,
                    .choice = s.choice,
                    .priority = s.priority,
                    .prompt = s.prompt,
                    .max_tokens = s.max_tokens,
                    .min_tokens = s.min_tokens,
                    .stop_ids = s.stop_ids,
                    .cache_salt = s.salt,
                    .adapter = {},
                    .prompt_logprobs = s.prompt_logprobs});
  }
  for (SeqKey key = next_key_; key > 1 && sequences_[key - 1].spec.group == next_group_; --key) {
    Force(&sequences_[key - 1]);
  }
  ++next_group_;
}

// Any key: waiting, running, in flight, ended, never given.
void Simulation::AbortSome() {
  const SeqKey key = static_cast<SeqKey>(random_.Between(0, static_cast<int32_t>(next_key_)));
  scheduler_.Abort(key);
  if (random_.Percent(20)) scheduler_.Abort(key);
  Tracked* tracked = Find(key);
  if (tracked == nullptr || tracked->ended) return;
  tracked->ended = true;
  tracked->running = false;
  ++report_.aborts;
}

Tracked* Simulation::Find(SeqKey key) {
  const auto found = sequences_.find(key);
  return found == sequences_.end() ? nullptr : &found->second;
}

void Simulation::Step() {
  const int64_t used_before = scheduler_.stats().blocks_used;
  scheduler_.Plan(&plan_, &changes_);
  ApplyChanges();
  CheckPreemptions(used_before);
  CheckPlan();
  if (plan_.empty() || failed()) return;
  if (auto broken = scheduler_.CheckInvariants(); !broken.empty()) Fail("planned: {}", broken);

  if (random_.Percent(30)) RandomEvents();
  CheckFence();
  model_.Run(plan_, &result_);
  if (!model_.error().empty()) Fail("{}", model_.error());
  if (failed()) return;
  result_.elapsed_ns = timer_.Measure(plan_);
  scheduler_.Commit(plan_, result_, &effects_);
  CheckEffects();
  CheckGauges();
  if (auto broken = scheduler_.CheckInvariants(); !broken.empty()) Fail("committed: {}", broken);
}

void Simulation::ApplyChanges() {
  // The first in order among those running is never preempted.
  const Tracked* first = nullptr;
  for (const auto& [key, tracked] : sequences_) {
    if (tracked.running && (first == nullptr || tracked.Before(*first))) first = &tracked;
  }
  for (const SeqKey key : changes_.preempted) {
    Tracked* tracked = Find(key);
    if (tracked == nullptr || !tracked->running) return Fail("{} is preempted, not running", key);
    if (tracked == first) Fail("{} is preempted, though it is first in order", key);
    tracked->running = false;
    ++preempted_;
  }
  for (const SeqSlot slot : changes_.released) model_.ReleaseSlot(slot);
  for (const PlanChanges::Bound& bound : changes_.bound) CheckBound(bound);
  CheckOrder();
}

// I6: preemptions free something, and nobody starts in the same step.
void Simulation::CheckPreemptions(int64_t used_before) {
  const int64_t grown = GrownBlocks();
  if (changes_.preempted.empty()) return;
  if (!changes_.bound.empty()) Fail("a sequence starts in the step of a preemption");
  // What a window group gives up at once is a claim: CheckInvariants counts those.
  if (config_.kv.windows.num_full() < config_.kv.windows.size()) return;
  const int64_t freed = used_before + grown - scheduler_.stats().blocks_used;
  if (freed < static_cast<int64_t>(changes_.preempted.size())) {
    Fail("{} preemptions freed {} blocks", changes_.preempted.size(), freed);
  }
}

// Blocks of a full group that the step's sequences have taken for what they fed since they began.
int64_t Simulation::GrownBlocks() {
  const int32_t size = config_.kv.block_size;
  const auto blocks = [size](int32_t tokens) { return (tokens + size - 1) / size; };
  int64_t grown = 0;
  for (const PlanItem& item : plan_.items) {
    if (model_.bound(item.slot) == nullptr) continue;
    Tracked& tracked = *Find(model_.bound(item.slot)->key);
    const auto length = static_cast<int32_t>(tracked.tokens.size());
    grown += blocks(length) - blocks(tracked.room);
    tracked.room = length;
  }
  return grown;
}

const PlanItem* Simulation::ItemOf(SeqSlot slot) const {
  const auto found = std::ranges::find(plan_.items, slot, &PlanItem::slot);
  return found == plan_.items.end() ? nullptr : &*found;
}

void Simulation::CheckBound(const PlanChanges::Bound& bound) {
  Tracked* tracked = Find(bound.key);
  if (tracked == nullptr || tracked->ended || tracked->running) {
    return Fail("{} starts, but does not wait", bound.key);
  }
  const SequenceSpec& spec = tracked->spec;
  if (!std::ranges::equal(bound.tokens, tracked->tokens) || bound.choice != spec.choice ||
      bound.prompt_len != static_cast<int32_t>(spec.prompt.size())) {
    Fail("{} starts with other tokens than its own", bound.key);
  }
  model_.BindSlot(bound.slot, &tracked->spec, bound.tokens);
  tracked->running = true;
  tracked->computed = bound.cached_tokens;
  tracked->room = static_cast<int32_t>(bound.tokens.size());

  const int32_t size = config_.kv.block_size;
  const bool may_hit =
      config_.kv.enable_prefix_caching && (!spec.prompt_logprobs || tracked->prompt_done);
  if (bound.cached_tokens > 0 && !may_hit) Fail("{} may not use the cache", bound.key);
  if (bound.cached_tokens % size != 0 ||
      bound.cached_tokens >= static_cast<int32_t>(tracked->tokens.size())) {
    Fail("{} found {} of {} tokens", bound.key, bound.cached_tokens, tracked->tokens.size());
  }
  if (bound.first_time && may_hit) {
    queries_ += bound.prompt_len;
    hits_ += std::min(bound.cached_tokens, bound.prompt_len);
  }
  const PlanItem* item = ItemOf(bound.slot);
  if (item == nullptr || failed()) return Fail("{} starts without a share of the step", bound.key);
  // I10: what was found is what this sequence would have computed, under its own salt.
  for (int32_t g = 0; g < config_.kv.windows.size(); ++g) {
    const int32_t first = FirstVisibleBlock(config_.kv.windows[g], size, bound.cached_tokens);
    for (int32_t b = first; b < bound.cached_tokens / size; ++b) {
      const BlockId block = BlockOf(*item, g, b);
      const auto text = std::span(tracked->tokens).first(static_cast<size_t>((b + 1) * size));
      if (!block.valid() || !model_.Holds(block, g, text, spec.salt)) {
        Fail("{} found block {}, which holds something else", bound.key, block.value);
      }
    }
  }
}

bool Simulation::WaitsForLeader(const Tracked& tracked) const {
  return std::ranges::any_of(sequences_, [&](const auto& entry) {
    const Tracked& other = entry.second;
    return other.spec.group == tracked.spec.group && other.spec.choice < tracked.spec.choice &&
           !other.ended && !other.prompt_done;
  });
}

// I7: whoever starts has nobody before it who waits, choices that wait for their first one aside.
void Simulation::CheckOrder() {
  for (const PlanChanges::Bound& bound : changes_.bound) {
    const Tracked* started = Find(bound.key);
    if (started == nullptr) continue;
    for (const auto& [key, waiting] : sequences_) {
      if (waiting.ended || waiting.running || !waiting.Before(*started)) continue;
      if (!WaitsForLeader(waiting)) Fail("{} overtakes {}", bound.key, key);
    }
  }
}

void Simulation::CheckPlan() {
  if (plan_.empty()) {
    if (!scheduler_.idle()) Fail("there is work, and an empty plan");
    return;
  }
  const int32_t num_tokens = static_cast<int32_t>(plan_.tokens.size());
  if (num_tokens > config_.max_num_batched_tokens) Fail("{} tokens exceed the budget", num_tokens);
  const int32_t output_tokens = plan_.decode_tokens + plan_.appended_tokens;
  if (plan_.prefill_tokens + output_tokens != num_tokens) Fail("token counts do not add up");
  if (static_cast<int32_t>(plan_.items.size()) > config_.max_num_seqs) Fail("too many sequences");
  std::set<int32_t> slots;
  written_.clear();
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const PlanItem& item = plan_.items[i];
    if (!slots.insert(item.slot.value).second) Fail("slot {} comes twice", item.slot.value);
    const bool decode = static_cast<int32_t>(i) < plan_.decode_tokens;
    if (decode && (item.num_tokens != 1 || !item.sample)) Fail("decodes do not come first");
    // Between them and the prompts stands what was appended: more than one token was left of it.
    const Tracked& tracked = *Find(model_.bound(item.slot)->key);
    const auto length = static_cast<int32_t>(tracked.tokens.size());
    const bool appended = !decode && item.first_token < output_tokens;
    if (appended &&
        (item.first_position + 1 >= length || item.first_token + item.num_tokens > output_tokens)) {
      Fail("what was appended does not stand between decodes and prompts");
    }
    CheckItem(item);
  }
  for (const PlanItem& item : plan_.items) {
    report_.digest =
        report_.digest * 0x100000001b3ull +
        static_cast<uint64_t>(item.slot.value * 4096 + item.first_position * 64 + item.num_tokens);
  }
}

void Simulation::CheckItem(const PlanItem& item) {
  const SequenceSpec* spec = model_.bound(item.slot);
  if (spec == nullptr) return Fail("slot {} is planned, not bound", item.slot.value);
  const Tracked& tracked = *Find(spec->key);
  const int32_t end = item.first_position + item.num_tokens;
  const int32_t length = static_cast<int32_t>(tracked.tokens.size());
  if (tracked.ended || item.num_tokens < 1 || item.first_position != tracked.computed ||
      end > length) {
    return Fail("{} is planned for [{}, {}) of {}, has {}", spec->key, item.first_position, end,
                length, tracked.computed);
  }
  for (int32_t i = 0; i < item.num_tokens; ++i) {
    if (plan_.tokens[item.first_token + i] != tracked.tokens[item.first_position + i]) {
      Fail("{} is fed a token that is not its own", spec->key);
    }
  }
  const int32_t size = config_.kv.block_size;
  if (item.num_blocks != (end + size - 1) / size) Fail("{} has a wrong block count", spec->key);
  for (int32_t g = 0; g < config_.kv.windows.size(); ++g) {
    for (int32_t b = item.first_position / size; b < item.num_blocks; ++b) {
      const BlockId block = BlockOf(item, g, b);
      if (!block.valid() || scheduler_.kv().pool().ref_count(block) != 1) {
        Fail("block {} is written, and is not the sequence's own", block.value);
      }
      if (!written_.insert(block.value).second) Fail("block {} is written twice", block.value);
    }
  }
  const bool wants_rows = spec->prompt_logprobs && !tracked.prompt_done;
  if ((item.logit_rows == LogitRows::kAll) != wants_rows) Fail("{}: wrong rows", spec->key);
  if (item.sample != (end == length && spec->max_tokens > 0)) Fail("{}: wrong sample", spec->key);
}

// I13: whatever was aborted or reset meanwhile, the step's blocks still belong to it.
void Simulation::CheckFence() {
  for (const BlockId block : plan_.block_ids) {
    if (!block.valid()) continue;  // the window has left it
    if (scheduler_.kv().pool().ref_count(block) < 1) Fail("block {} freed in flight", block.value);
  }
}

void Simulation::CheckEffects() {
  for (const PlanItem& item : plan_.items) {
    Tracked& tracked = *Find(model_.bound(item.slot)->key);
    tracked.computed += item.num_tokens;
  }
  for (const Effects::PromptRows& rows : effects_.prompt_rows) CheckRows(rows);
  for (const Effects::Output& output : effects_.outputs) CheckOutput(output);
  for (const Effects::Output& output : effects_.outputs) {
    if (Tracked* tracked = Find(output.key); tracked != nullptr && !tracked->ended) Force(tracked);
  }
  for (const PlanItem& item : plan_.items) {
    Tracked& tracked = *Find(model_.bound(item.slot)->key);
    const int32_t prompt_len = static_cast<int32_t>(tracked.spec.prompt.size());
    tracked.prompt_done |= tracked.computed >= prompt_len;
    // Whatever was sampled was reported: nobody waits for a token that came.
    if (!tracked.ended && item.sample &&
        tracked.computed == static_cast<int32_t>(tracked.tokens.size())) {
      Fail("{}: a sampled token was not reported", tracked.spec.key);
    }
  }
}

void Simulation::CheckRows(const Effects::PromptRows& rows) {
  Tracked* tracked = Find(rows.key);
  if (tracked == nullptr || tracked->ended) return Fail("rows for {}, which has ended", rows.key);
  for (int32_t i = 0; i < rows.count; ++i) {
    const LogprobRow& row = result_.logprob_rows[rows.first_row + i];
    const int32_t position = rows.first_position + i;
    if (position < 1 || position >= static_cast<int32_t>(tracked->spec.prompt.size()) ||
        row.chosen.token != tracked->spec.prompt[position] ||
        row.chosen.logprob != tracked->expected.prompt_rows[position - 1]) {
      return Fail("{}: wrong prompt log-probability at {}", rows.key, position);
    }
    tracked->rows_seen[position] = true;
  }
}

// I4, I8, I9: what the sequence says alone, token for token, and one end.
void Simulation::CheckOutput(const Effects::Output& output) {
  Tracked* tracked = Find(output.key);
  if (tracked == nullptr || tracked->ended) {
    return Fail("output for {}, which has ended", output.key);
  }
  const ExpectedOutput& expected = tracked->expected;
  if (output.token >= 0) {
    CheckToken(tracked, output.token);
    ++report_.tokens;
  }
  const size_t outputs = static_cast<size_t>(tracked->outputs());
  const bool last = outputs == expected.tokens.size() &&
                    (output.token >= 0 || expected.tokens.empty() || tracked->spec.error_at >= 0);
  const bool error_follows = expected.finish == SeqFinish::kError && output.token >= 0;
  const SeqFinish finish = last && !error_follows ? expected.finish : SeqFinish::kNone;
  if (output.finish != finish) Fail("{}: wrong finish after {} tokens", output.key, outputs);
  const TokenId stop = finish == SeqFinish::kStop ? output.token : -1;
  if (output.stop_token != stop) Fail("{}: wrong stop token", output.key);
  if (tracked->spec.prompt_logprobs &&
      std::count(tracked->rows_seen.begin() + 1, tracked->rows_seen.end(), false) > 0) {
    Fail("{}: output before the prompt's log-probabilities", output.key);
  }
  if (output.finish != SeqFinish::kNone) {
    tracked->ended = true;
    tracked->running = false;
  }
}

void Simulation::CheckToken(Tracked* tracked, TokenId token) {
  const auto index = static_cast<size_t>(tracked->outputs());
  const std::vector<TokenId>& expected = tracked->expected.tokens;
  if (index >= expected.size() || expected[index] != token) {
    return Fail("{}: output {} differs from that of the request alone", tracked->spec.key, index);
  }
  tracked->tokens.push_back(token);
}

// Puts down what must follow its output.
void Simulation::Force(Tracked* tracked) {
  const SequenceSpec& spec = tracked->spec;
  const auto prompt_len = static_cast<int32_t>(spec.prompt.size());
  const int32_t max_tokens = std::min(spec.max_tokens, config_.max_model_len - prompt_len);
  const auto forced =
      ForcedBehind(spec, tracked->outputs(), spec.MostForced(tracked->outputs(), max_tokens));
  if (forced.empty()) return;
  const auto appended = scheduler_.Append(spec.key, forced, false);
  for (int32_t i = 0; i < appended.count; ++i) CheckToken(tracked, forced[static_cast<size_t>(i)]);
  report_.forced += appended.count;
  const ExpectedOutput& expected = tracked->expected;
  const bool last =
      tracked->outputs() == std::ssize(expected.tokens) && expected.finish != SeqFinish::kError;
  if (appended.finish != (last ? expected.finish : SeqFinish::kNone)) {
    Fail("{}: wrong finish after forced tokens", spec.key);
  }
  if (appended.finish == SeqFinish::kNone) return;
  tracked->ended = true;
  tracked->running = false;
}

// I14, with what the simulation counted itself.
void Simulation::CheckGauges() {
  const SchedulerStats stats = scheduler_.stats();
  int64_t running = 0;
  int64_t live = 0;
  for (const auto& [key, tracked] : sequences_) {
    running += tracked.running;
    live += !tracked.ended;
  }
  if (stats.running != running || stats.waiting != live - running) {
    Fail("gauges say {} running, {} waiting", stats.running, stats.waiting);
  }
  if (stats.preemptions != preempted_) Fail("{} preemptions counted", stats.preemptions);
  if (stats.prefix_hits != hits_ || stats.prefix_queries != queries_) {
    Fail("{} of {} prefix tokens counted", stats.prefix_hits, stats.prefix_queries);
  }
  if (stats.blocks_total != config_.kv.num_blocks ||
      stats.blocks_used + stats.blocks_cached > stats.blocks_total) {
    Fail("block gauges do not add up");
  }
}

// I5, I12.
void Simulation::CheckEnd() {
  for (const auto& [key, tracked] : sequences_) {
    if (!tracked.ended) Fail("{} never ended", key);
  }
  const SchedulerStats stats = scheduler_.stats();
  if (stats.running != 0 || stats.waiting != 0 || stats.blocks_used != 0) {
    Fail("idle with {} running, {} waiting, {} blocks", stats.running, stats.waiting,
         stats.blocks_used);
  }
  scheduler_.ResetPrefixCache();
  if (scheduler_.stats().blocks_cached != 0) Fail("the reset left cached blocks");
  if (auto broken = scheduler_.CheckInvariants(); !broken.empty()) Fail("at the end: {}", broken);
}

}  // namespace

SimulationReport Simulate(uint64_t seed) { return std::make_unique<Simulation>(seed)->Run(); }

}  // namespace vivace::sim
