#include "grammar/tracker.h"

#include <algorithm>

namespace vivace::grammar {
namespace {

constexpr int64_t kNever = Automaton::kNever;
constexpr int kMostRounds = 16;  // of rules that depend on each other at one position

}  // namespace

Tracker::Tracker(std::shared_ptr<const Automaton> automaton)
    : EarleyParser(automaton->grammar()), automaton_(std::move(automaton)) {
  FindBehind();
}

bool Tracker::Advance(uint8_t byte) {
  if (!EarleyParser::Advance(byte)) return false;
  FindBehind();
  return true;
}

void Tracker::Pop(int32_t count) {
  if (count <= 0) return;
  PopLastStates(count);
  begin_.resize(begin_.size() - static_cast<size_t>(count) + 1);
  behind_.resize(begin_.back());
  begin_.pop_back();
  if (begin_.empty()) FindBehind();
}

bool Tracker::AdvanceAll(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (Advance(static_cast<uint8_t>(bytes[i]))) continue;
    Pop(static_cast<int32_t>(i));
    return false;
  }
  return true;
}

int32_t Tracker::AdvanceToken(TokenId token, std::string_view bytes) {
  const auto count = static_cast<int32_t>(bytes.size());
  const bool spelled = (count > 0 || !automaton_->names_tokens()) && AdvanceAll(bytes);
  if (!automaton_->names_tokens()) return spelled ? count : kLost;
  if (spelled) Pop(count);
  const bool named = AdvanceAtomicToken(token);
  if (named) FindBehind();
  if (named && spelled) Pop(1);
  if (named) return spelled ? kLost : 1;
  return spelled && AdvanceAll(bytes) ? count : kLost;
}

const Tracker::Behind* Tracker::BehindOf(int32_t rule, int32_t position) const {
  const auto row = static_cast<size_t>(position);
  const size_t end = row + 1 < begin_.size() ? begin_[row + 1] : behind_.size();
  for (size_t i = begin_[row]; i < end; ++i) {
    if (behind_[i].rule == rule) return &behind_[i];
  }
  return nullptr;
}

int64_t Tracker::RestOf(const State& parent, int32_t completed, int64_t* again) const {
  *again = 0;
  const Automaton::Repeat repeat = automaton_->RepeatAt(parent.element_id);
  if (repeat.rule != completed) return automaton_->CostOf(parent.element_id);
  *again = std::max<int64_t>(repeat.lower - parent.repeat_count - 1, 0);
  const int64_t once = automaton_->RuleCost(completed), rest = automaton_->CostOf(repeat.target);
  return *again > 0 && once >= kNever / *again ? kNever : std::min(*again * once + rest, kNever);
}

// What is behind the rules begun at the latest position, which may depend on each other: rounds of
// relaxation, as in Bellman and Ford's algorithm.
void Tracker::FindBehind() {
  const size_t row_begin = behind_.size();
  begin_.push_back(row_begin);
  for (const auto& [rule, parent] : rule_id_to_completable_states_[position()]) {
    const bool known = std::any_of(behind_.begin() + static_cast<std::ptrdiff_t>(row_begin),
                                   behind_.end(), [&](const Behind& b) { return b.rule == rule; });
    if (!known) behind_.push_back({rule, -1, kNever});
  }
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (size_t i = row_begin; i < behind_.size(); ++i) {
      changed |= Improve(&behind_[i]);
    }
  }
}

bool Tracker::Improve(Behind* behind) {
  bool changed = false;
  const auto row = rule_id_to_completable_states_[position()];
  for (int32_t i = 0; i < row.size(); ++i) {
    const auto& [rule, parent] = row[i];
    if (rule != behind->rule || parent.rule_id < 0) continue;
    int64_t least = 0, again = 0;
    if (parent.rule_start_pos >= 0) {
      const Behind* outer = BehindOf(parent.rule_id, parent.rule_start_pos);
      if (outer == nullptr) continue;
      least = outer->least;
    }
    least = std::min(least + RestOf(parent, rule, &again), kNever);
    if (least < behind->least) {
      behind->least = least;
      behind->parent = i;
      changed = true;
    }
  }
  return changed;
}

int64_t Tracker::CostBy(const State& state) const {
  const int64_t cost = automaton_->CostOf(state.element_id);
  if (state.rule_start_pos < 0) return cost;
  const Behind* behind = BehindOf(state.rule_id, state.rule_start_pos);
  return cost + (behind == nullptr ? kNever : behind->least);
}

int64_t Tracker::ShortestBytes() const {
  if (IsCompleted()) return 0;
  const State* state = Cheapest();
  return state == nullptr ? kNever : CostBy(*state);
}

const Tracker::State* Tracker::Cheapest() const {
  const State* best = nullptr;
  int64_t least = kNever;
  for (const State& state : LatestStates()) {
    const int64_t cost = CostBy(state);
    if (cost < least) least = cost, best = &state;
  }
  return best;
}

bool Tracker::Shortest(size_t most, std::string* text) const {
  text->clear();
  if (IsCompleted()) return true;
  const State* state = Cheapest();
  if (state == nullptr || !automaton_->AppendShortest(state->element_id, most, text)) return false;
  int32_t rule = state->rule_id, position = state->rule_start_pos;
  while (position >= 0) {
    const Behind* behind = BehindOf(rule, position);
    if (behind == nullptr || behind->parent < 0) return false;
    const State& parent = rule_id_to_completable_states_[position][behind->parent].second;
    int64_t again = 0;
    static_cast<void>(RestOf(parent, rule, &again));
    const Automaton::Repeat repeat = automaton_->RepeatAt(parent.element_id);
    for (; again > 0; --again) {
      if (!automaton_->AppendShortest(automaton_->StartOf(rule), most, text)) return false;
    }
    const int32_t next = repeat.rule == rule ? repeat.target : parent.element_id;
    if (!automaton_->AppendShortest(next, most, text)) return false;
    rule = parent.rule_id;
    position = parent.rule_start_pos;
  }
  return true;
}

std::optional<uint8_t> Tracker::ForcedByte() const {
  if (IsCompleted()) return std::nullopt;
  int forced = -1;
  for (const State& state : LatestStates()) {
    for (const xgrammar::FSMEdge& edge : grammar_->complete_fsm.GetEdges(state.element_id)) {
      if (edge.IsToken() || edge.IsExcludeToken()) return std::nullopt;
      if (!edge.IsCharRange()) continue;
      if (edge.min != edge.max || (forced >= 0 && forced != edge.min)) return std::nullopt;
      forced = edge.min;
    }
  }
  if (forced < 0) return std::nullopt;
  return static_cast<uint8_t>(forced);
}

}  // namespace vivace::grammar
