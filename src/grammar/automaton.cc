#include "grammar/automaton.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <string_view>

#include "grammar/token_spelling.h"

namespace vivace::grammar {
namespace {

using xgrammar::FSMEdge;

// The byte of a range to write where any will do: one that reads well, and that a token is.
std::optional<uint8_t> PleasantByte(const FSMEdge& edge, const Vocabulary& vocabulary) {
  constexpr std::string_view kPleasant = "\"0a}]A ";
  for (const char c : kPleasant) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= edge.min && byte <= edge.max && vocabulary.Spells(byte)) return byte;
  }
  for (int byte = edge.min; byte <= std::min(edge.max, 255); ++byte) {
    if (vocabulary.Spells(static_cast<uint8_t>(byte))) return static_cast<uint8_t>(byte);
  }
  return std::nullopt;
}

}  // namespace

Automaton::Automaton(xgrammar::Grammar grammar, const Vocabulary& vocabulary)
    : grammar_(std::move(grammar)) {
  const int32_t rules = grammar_->NumRules();
  const auto states = static_cast<size_t>(grammar_->complete_fsm.NumStates());
  rule_of_.assign(states, -1);
  is_end_.assign(states, false);
  costs_.assign(states, kNever);
  best_edge_.assign(states, -1);
  best_byte_.assign(states, 0);
  for (int32_t rule = 0; rule < rules; ++rule) {
    const auto& data = grammar_->GetRule(rule);
    if (data.max_tokens >= 0 || data.max_chars >= 0 || data.is_lazy) steerable_ = false;
    const auto& fsm = grammar_->per_rule_fsms[static_cast<size_t>(rule)]->GetFsm();
    starts_.push_back(fsm.GetStart());
    for (const int32_t end : fsm.GetEnds()) is_end_[static_cast<size_t>(end)] = true;
    std::vector<int32_t> open{fsm.GetStart()};
    rule_of_[static_cast<size_t>(fsm.GetStart())] = rule;
    while (!open.empty()) {
      const int32_t state = open.back();
      open.pop_back();
      for (const FSMEdge& edge : EdgesOf(state)) {
        int32_t& owner = rule_of_[static_cast<size_t>(edge.target)];
        if (owner == rule) continue;
        owner = rule;
        open.push_back(edge.target);
      }
    }
  }
  FindCosts(vocabulary);
}

Automaton::Repeat Automaton::RepeatAt(int32_t state) const {
  for (const FSMEdge& edge : EdgesOf(state)) {
    if (!edge.IsRepeatRef()) break;
    const auto info = grammar_->complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
    return {info.RuleId(), info.Lower(), edge.target};
  }
  return {};
}

// Of the edge alone, kNever while it is not known.
int64_t Automaton::EdgeCost(const FSMEdge& edge, const Vocabulary& vocabulary) const {
  if (edge.IsCharRange()) return PleasantByte(edge, vocabulary) ? 1 : kNever;
  if (edge.IsEpsilon()) return 0;
  if (edge.IsRuleRef()) return RuleCost(edge.GetRefRuleId());
  if (edge.IsRepeatRef()) {
    const auto info = grammar_->complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
    if (info.Lower() == 0) return 0;
    const int64_t once = RuleCost(info.RuleId());
    return once == kNever || once > kNever / info.Lower() ? kNever : once * info.Lower();
  }
  return edge.IsToken() || edge.IsExcludeToken() ? 1 : kNever;
}

void Automaton::FindCosts(const Vocabulary& vocabulary) {
  // The edges that may become cheaper when a state, or the rule that begins there, becomes known.
  std::vector<std::vector<std::pair<int32_t, int32_t>>> into(states());
  std::vector<std::vector<std::pair<int32_t, int32_t>>> uses(starts_.size());
  for (size_t state = 0; state < states(); ++state) {
    const auto edges = EdgesOf(static_cast<int32_t>(state));
    for (int32_t i = 0; i < edges.size(); ++i) {
      const std::pair from{static_cast<int32_t>(state), i};
      into[static_cast<size_t>(edges[i].target)].push_back(from);
      if (edges[i].IsRuleRef()) {
        uses[static_cast<size_t>(edges[i].GetRefRuleId())].push_back(from);
      } else if (edges[i].IsRepeatRef()) {
        const auto info = grammar_->complete_fsm.GetRepeatEdgeInfo(edges[i].GetAuxIndex());
        uses[static_cast<size_t>(info.RuleId())].push_back(from);
      }
    }
  }
  using Entry = std::pair<int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<bool> known(states(), false);
  for (size_t state = 0; state < states(); ++state) {
    if (!is_end_[state]) continue;
    costs_[state] = 0;
    queue.emplace(0, static_cast<int32_t>(state));
  }
  const auto relax = [&](const std::pair<int32_t, int32_t>& from) {
    const auto [state, index] = from;
    const FSMEdge& edge = EdgesOf(state)[index];
    if (!known[static_cast<size_t>(edge.target)]) return;
    const int64_t cost = EdgeCost(edge, vocabulary), rest = CostOf(edge.target);
    if (cost >= kNever - rest || cost + rest >= costs_[static_cast<size_t>(state)]) return;
    costs_[static_cast<size_t>(state)] = cost + rest;
    best_edge_[static_cast<size_t>(state)] = index;
    if (edge.IsCharRange()) {
      best_byte_[static_cast<size_t>(state)] = *PleasantByte(edge, vocabulary);
    }
    queue.emplace(cost + rest, state);
  };
  std::vector<std::vector<int32_t>> begins(states());
  for (size_t rule = 0; rule < starts_.size(); ++rule) {
    begins[static_cast<size_t>(starts_[rule])].push_back(static_cast<int32_t>(rule));
  }
  while (!queue.empty()) {
    const auto [cost, state] = queue.top();
    queue.pop();
    const auto at = static_cast<size_t>(state);
    if (known[at] || cost != costs_[at]) continue;
    known[at] = true;
    for (const auto& from : into[at]) relax(from);
    for (const int32_t rule : begins[at]) {
      for (const auto& from : uses[static_cast<size_t>(rule)]) relax(from);
    }
  }
}

bool Automaton::AppendShortest(int32_t state, size_t most, std::string* text) const {
  std::vector<std::pair<int32_t, int64_t>> open{{state, 1}};  // how many times over
  while (!open.empty()) {
    auto& [next, times] = open.back();
    int32_t at = next;
    if (--times == 0) open.pop_back();
    while (best_edge_[static_cast<size_t>(at)] >= 0) {
      if (text->size() > most) return false;
      const FSMEdge& edge = EdgesOf(at)[best_edge_[static_cast<size_t>(at)]];
      if (edge.IsCharRange()) {
        text->push_back(static_cast<char>(best_byte_[static_cast<size_t>(at)]));
        at = edge.target;
      } else if (edge.IsToken()) {
        const auto named = grammar_->complete_fsm.GetTokenEdgeInfo(edge.GetAuxIndex());
        if (named.Count() == 0) return false;
        named_token::Append(named.TokenIds()[0], text);
        at = edge.target;
      } else if (edge.IsExcludeToken()) {
        return false;
      } else if (edge.IsRuleRef()) {
        open.emplace_back(edge.target, 1);
        at = starts_[static_cast<size_t>(edge.GetRefRuleId())];
      } else if (edge.IsRepeatRef()) {
        const auto info = grammar_->complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
        open.emplace_back(edge.target, 1);
        if (info.Lower() > 0) {
          open.emplace_back(starts_[static_cast<size_t>(info.RuleId())], info.Lower());
        }
        break;
      } else {
        at = edge.target;
      }
    }
  }
  return text->size() <= most;
}

std::string Automaton::EndlessRule() const {
  std::vector<bool> met(starts_.size(), false);
  std::vector<int32_t> open{grammar_->GetRootRuleId()};
  std::vector<bool> seen(states(), false);
  const auto meet = [&](int32_t rule) {
    if (!met[static_cast<size_t>(rule)]) open.push_back(rule);
  };
  while (!open.empty()) {
    const int32_t rule = open.back();
    open.pop_back();
    if (met[static_cast<size_t>(rule)]) continue;
    met[static_cast<size_t>(rule)] = true;
    if (RuleCost(rule) >= kNever) return grammar_->GetRule(rule).name;
    std::vector<int32_t> inner{starts_[static_cast<size_t>(rule)]};
    while (!inner.empty()) {
      const int32_t state = inner.back();
      inner.pop_back();
      if (seen[static_cast<size_t>(state)]) continue;
      seen[static_cast<size_t>(state)] = true;
      for (const FSMEdge& edge : EdgesOf(state)) {
        inner.push_back(edge.target);
        if (edge.IsRuleRef()) meet(edge.GetRefRuleId());
        if (edge.IsRepeatRef()) {
          meet(grammar_->complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex()).RuleId());
        }
      }
    }
  }
  return {};
}

std::string Automaton::LeftRecursiveRule() const {
  // A circle among states that no byte leads through, by depth-first search.
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> marks(states(), kNew);
  struct Visit {
    int32_t state;
    std::vector<int32_t> next;
  };
  const auto successors = [&](int32_t state) {
    std::vector<int32_t> next;
    for (const FSMEdge& edge : EdgesOf(state)) {
      if (edge.IsEpsilon()) next.push_back(edge.target);
      int32_t rule = edge.GetRefRuleId();
      bool skip = false;
      if (edge.IsRepeatRef()) {
        const auto info = grammar_->complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
        rule = info.RuleId();
        skip = info.Lower() == 0;
      }
      if (rule < 0) continue;
      next.push_back(StartOf(rule));
      if (skip || RuleCost(rule) == 0) next.push_back(edge.target);
    }
    return next;
  };
  std::vector<Visit> open;
  for (size_t first = 0; first < states(); ++first) {
    if (rule_of_[first] < 0 || marks[first] != kNew) continue;
    marks[first] = kOpen;
    open.push_back({static_cast<int32_t>(first), successors(static_cast<int32_t>(first))});
    while (!open.empty()) {
      if (open.back().next.empty()) {
        marks[static_cast<size_t>(open.back().state)] = kDone;
        open.pop_back();
        continue;
      }
      const int32_t state = open.back().next.back();
      open.back().next.pop_back();
      uint8_t& mark = marks[static_cast<size_t>(state)];
      if (mark == kOpen) return grammar_->GetRule(rule_of_[static_cast<size_t>(state)]).name;
      if (mark == kDone) continue;
      mark = kOpen;
      open.push_back({state, successors(state)});
    }
  }
  return {};
}

}  // namespace vivace::grammar
