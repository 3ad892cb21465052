#include "grammar/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grammar/ebnf.h"

// xgrammar's.
#include "compiled_grammar_impl.h"
#include "fsm.h"
#include "grammar_impl.h"
#include "support/int_set.h"

namespace vivace::grammar {
namespace {

using xgrammar::AdaptiveTokenMask;
using xgrammar::FSMEdge;
using xgrammar::ParserState;
using Bytes = std::bitset<256>;
using Fsm = xgrammar::CompactFSMWithStartEnd;

constexpr int32_t kCountOffset = 500'000'000;
constexpr int32_t kNoMost = 999'999'999;  // the greatest that xgrammar reads

std::unordered_set<int> StatesOf(const Fsm& fsm) {
  std::unordered_set<int> states;
  fsm.GetReachableStates(&states);
  return states;
}

// What is repeated, as a deterministic automaton over bytes.
struct Body {
  static constexpr size_t kMostStates = 500;

  std::vector<std::array<int16_t, 256>> next;  // -1: nowhere
  std::vector<bool> end;
  std::map<int, int> of;  // xgrammar's states
  int start = 0;

  // Nothing for what is not bytes, or may go on where it is complete.
  static std::optional<Body> From(const Fsm& fsm);
};

std::optional<Body> Body::From(const Fsm& fsm) {
  Body body;
  std::map<std::vector<int>, int> sets;  // the powerset construction's
  std::vector<const std::vector<int>*> order;
  const auto add = [&](std::vector<int> set) {
    const auto [at, fresh] = sets.try_emplace(std::move(set), static_cast<int>(order.size()));
    if (fresh) order.push_back(&at->first);
    return at->second;
  };
  body.start = add({fsm.GetStart()});
  for (const int state : StatesOf(fsm)) body.of[state] = add({state});
  for (size_t i = 0; i < order.size(); ++i) {
    if (order.size() > kMostStates) return std::nullopt;
    const std::vector<int> set = *order[i];
    std::array<std::vector<int>, 256> targets;
    size_t ends = 0, edges = 0;
    for (const int state : set) {
      ends += fsm.IsEndState(state) ? 1 : 0;
      for (const FSMEdge& edge : fsm.GetFsm().GetEdges(state)) {
        if (!edge.IsCharRange() || edge.max > 0xFF) return std::nullopt;
        ++edges;
        for (int byte = edge.min; byte <= edge.max; ++byte) {
          targets[static_cast<size_t>(byte)].push_back(edge.target);
        }
      }
    }
    if (ends > 0 && (ends < set.size() || edges > 0)) return std::nullopt;
    body.end.push_back(ends > 0);
    body.next.emplace_back();
    for (size_t byte = 0; byte < 256; ++byte) {
      std::vector<int>& target = targets[byte];
      std::ranges::sort(target);
      target.erase(std::unique(target.begin(), target.end()), target.end());
      body.next[i][byte] = target.empty() ? int16_t{-1} : static_cast<int16_t>(add(target));
    }
  }
  if (body.end[static_cast<size_t>(body.start)]) return std::nullopt;
  return body;
}

// What may follow a repeat, wherever its body is used.
struct Follow {
  Bytes always, ever;
  int32_t most = 0;  // repeats
};

// Which rules are bodies of repeats whose tokens a count decides: they are used by repeats alone,
// and what follows those begins with other bytes.
class Bodies {
 public:
  explicit Bodies(const xgrammar::Grammar& grammar)
      : grammar_(grammar),
        bodies_(static_cast<size_t>(grammar->NumRules())),
        follow_(bodies_.size(), Follow{Bytes().set(), {}, 0}) {
    const auto rules = static_cast<int32_t>(bodies_.size());
    std::vector<bool> repeated(bodies_.size(), false);
    ForEachEdge([&](const Fsm&, const FSMEdge& edge) {
      if (edge.IsRepeatRef()) repeated[static_cast<size_t>(InfoOf(edge).RuleId())] = true;
    });
    for (int32_t rule = 0; rule < rules; ++rule) {
      const auto at = static_cast<size_t>(rule);
      if (repeated[at] && IsPlain(rule)) bodies_[at] = Body::From(FsmOf(rule));
    }
    for (int32_t rule = 0; rule < rules; ++rule) {
      const auto* stop = grammar_->GetSuffixStopInfo(rule);
      if (stop == nullptr) continue;
      Exclude(stop->body_rule_id);
      Exclude(stop->marker_rule_id);
    }
    ForEachEdge([&](const Fsm& fsm, const FSMEdge& edge) {
      Exclude(edge.GetRefRuleId());
      if (edge.IsRepeatRef()) UsedBy(fsm, edge);
    });
  }

  // Null: its tokens are not decided by a count.
  const Body* Of(int32_t rule) const {
    return rule >= 0 && bodies_[static_cast<size_t>(rule)] ? &*bodies_[static_cast<size_t>(rule)]
                                                           : nullptr;
  }
  const Follow& FollowOf(int32_t rule) const { return follow_[static_cast<size_t>(rule)]; }

 private:
  const Fsm& FsmOf(int32_t rule) const {
    return grammar_->per_rule_fsms[static_cast<size_t>(rule)]->GetFsm();
  }
  xgrammar::RepeatEdgeRef InfoOf(const FSMEdge& repeat) const {
    return grammar_->complete_fsm.GetRepeatEdgeInfo(repeat.GetAuxIndex());
  }

  template <typename Visit>
  void ForEachEdge(const Visit& visit) const {
    for (int32_t rule = 0; rule < grammar_->NumRules(); ++rule) {
      const Fsm& fsm = FsmOf(rule);
      for (const int state : StatesOf(fsm)) {
        for (const FSMEdge& edge : fsm.GetFsm().GetEdges(state)) visit(fsm, edge);
      }
    }
  }

  void Exclude(int32_t rule) {
    if (rule >= 0) bodies_[static_cast<size_t>(rule)].reset();
  }

  // Without anything that makes a rule more than its automaton.
  bool IsPlain(int32_t rule) const {
    const auto& data = grammar_->GetRule(rule);
    return rule != grammar_->GetRootRuleId() && data.lookahead_assertion_id == -1 &&
           data.max_tokens < 0 && data.max_chars < 0 && !data.is_lazy &&
           data.capture_name.empty() && !data.temperature.has_value() &&
           grammar_->GetSuffixStopInfo(rule) == nullptr;
  }

  void UsedBy(const Fsm& fsm, const FSMEdge& repeat) {
    const xgrammar::RepeatEdgeRef info = InfoOf(repeat);
    const auto at = static_cast<size_t>(info.RuleId());
    if (!bodies_[at]) return;
    Bytes bytes;
    bool plain = !fsm.IsEndState(repeat.target);
    for (const FSMEdge& edge : fsm.GetFsm().GetEdges(repeat.target)) {
      plain = plain && edge.IsCharRange() && edge.max <= 0xFF;
      for (int byte = edge.min; plain && byte <= edge.max; ++byte) {
        const auto b = static_cast<size_t>(byte);
        bytes.set(b);
        plain = bodies_[at]->next[static_cast<size_t>(bodies_[at]->start)][b] < 0;
      }
    }
    if (!plain) return Exclude(info.RuleId());
    follow_[at].always &= bytes;
    follow_[at].ever |= bytes;
    follow_[at].most = std::max(follow_[at].most, info.Upper());
  }

  const xgrammar::Grammar grammar_;
  std::vector<std::optional<Body>> bodies_;  // by rule
  std::vector<Follow> follow_;
};

// How a token goes on from a state of a body.
struct Way {
  enum Kind : uint8_t {
    kInside,  // allowed if `count` repeats may begin
    kLeaves,  // with its last byte: allowed if the repeats may be `count` more
    kNever,
    kTried,  // what stands behind the repeats decides
  };
  Kind kind;
  int32_t count = 0;  // the one begun already among them
};

Way WayOf(const Body& body, int from, const Follow& follow, std::string_view token) {
  int32_t count = 0;
  int state = from;
  for (size_t i = 0; i < token.size(); ++i) {
    const auto byte = static_cast<uint8_t>(token[i]);
    const int next = body.next[static_cast<size_t>(state)][byte];
    if (next < 0) {
      if (state != body.start || count == 0 || !follow.ever[byte]) return {Way::kNever};
      const bool last = i + 1 == token.size() && follow.always[byte];
      return last ? Way{Way::kLeaves, count} : Way{Way::kTried};
    }
    state = next;
    if (body.end[static_cast<size_t>(state)]) {
      ++count;
      state = body.start;
    }
    if (count > follow.most) return {Way::kNever};
  }
  if (state != body.start) ++count;
  return count > follow.most ? Way{Way::kNever} : Way{Way::kInside, count};
}

using Vocab = std::vector<std::pair<int32_t, std::string>>;  // ids and bytes, by bytes

// Takes decided tokens out of a mask's own lists. What the mask accepts is then a list of what may
// come: a list of what may not would let the decided ones through.
void Remove(const std::vector<int32_t>& decided, const Vocab& vocab, int vocab_size,
            AdaptiveTokenMask* mask) {
  using Store = AdaptiveTokenMask::StoreType;
  if (mask->store_type == Store::kRejected) {
    std::vector<int32_t> others = mask->rejected_indices;
    xgrammar::IntsetUnion(&others, mask->uncertain_indices);
    mask->accepted_bitset = xgrammar::DynamicBitset(vocab_size);
    for (const auto& [id, bytes] : vocab) mask->accepted_bitset.Set(id);
    for (const int32_t index : others) {
      mask->accepted_bitset.Reset(vocab[static_cast<size_t>(index)].first);
    }
    mask->rejected_indices.clear();
    mask->store_type = Store::kAcceptedBitset;
  }
  if (mask->store_type == Store::kAcceptedBitset) {
    for (const int32_t index : decided) {
      mask->accepted_bitset.Reset(vocab[static_cast<size_t>(index)].first);
    }
  } else {
    xgrammar::IntsetDifference(&mask->accepted_indices, decided);
  }
  xgrammar::IntsetDifference(&mask->uncertain_indices, decided);
}

void Decide(const Body& body, int state, const Follow& follow,
            const xgrammar::TokenizerInfo& tokens, AdaptiveTokenMask* mask) {
  const Vocab& vocab = tokens.GetSortedDecodedVocab();
  std::map<int32_t, std::vector<int32_t>> by_count;  // ids
  std::vector<int32_t> decided;
  mask->repeat_exit_tokens.clear();
  for (size_t i = 0; i < vocab.size(); ++i) {
    const auto& [id, bytes] = vocab[i];
    const Way way = WayOf(body, state, follow, bytes);
    if (way.kind == Way::kTried) continue;
    decided.push_back(static_cast<int32_t>(i));
    if (way.kind == Way::kInside) by_count[way.count].push_back(id);
    if (way.kind == Way::kLeaves) mask->repeat_exit_tokens.emplace_back(way.count, id);
  }
  mask->repeat_interior_char_counts.clear();
  mask->repeat_interior_bitsets.clear();
  xgrammar::DynamicBitset upto(tokens.GetVocabSize());
  for (const auto& [count, ids] : by_count) {
    for (const int32_t id : ids) upto.Set(id);
    mask->repeat_interior_char_counts.push_back(count);
    mask->repeat_interior_bitsets.push_back(upto);
  }
  Remove(decided, vocab, tokens.GetVocabSize(), mask);
}

// Sets the counts right and lets repeats of the same thing share a rule. The rules not used then.
std::unordered_set<int32_t> SetCounts(const xgrammar::Grammar& grammar) {
  xgrammar::CompactFSM fsm = grammar->complete_fsm;
  std::vector<int32_t> data = fsm.GetEdgeAuxData();  // [rule, least, most] of each repeat
  std::map<std::string, int32_t> bodies;
  std::unordered_set<int32_t> unused;
  for (int state = 0; state < fsm.NumStates(); ++state) {
    for (const FSMEdge& edge : fsm.GetEdges(state)) {
      const auto at = static_cast<size_t>(std::max(edge.GetAuxIndex(), 0));
      if (!edge.IsRepeatRef() || data[at + 1] < kCountOffset) continue;
      data[at + 1] -= kCountOffset;
      data[at + 2] -= kCountOffset;
      const auto body = grammar->GetGrammarExpr(grammar->GetRule(data[at]).body_expr_id);
      if (body.type != xgrammar::Grammar::Impl::GrammarExprType::kRegex) continue;
      const int32_t shared =
          bodies.try_emplace(grammar->GetRegexString(body), data[at]).first->second;
      if (shared != data[at]) unused.insert(data[at]);
      data[at] = shared;
    }
  }
  fsm.SetEdgeAuxData(std::move(data));
  return unused;
}

}  // namespace

bool HasCountedStrings(std::string_view grammar) {
  return grammar.find("Regex(") != std::string_view::npos;  // it may: then that costs nothing more
}

std::string CountedRest(std::string_view character, int64_t min, int64_t max) {
  const int64_t most = max == kUnbounded ? kNoMost : kCountOffset + max;
  return fmt::format(
      "Regex({})", Literal(fmt::format("(?:{}){{{},{}}}\"", character, kCountOffset + min, most)));
}

void SetCountsAndMakeMasks(xgrammar::CompiledGrammar* compiled) {
  xgrammar::CompiledGrammar::Impl& impl = *compiled->operator->();
  const xgrammar::Grammar grammar = impl.grammar;
  const std::unordered_set<int32_t> unused = SetCounts(grammar);
  for (int32_t rule = 0; rule < grammar->NumRules(); ++rule) {
    if (unused.contains(rule)) continue;
    ParserState at(rule, grammar->GetRule(rule).body_expr_id, 0, ParserState::kNoPrevInputPos);
    const Fsm& fsm = grammar->per_rule_fsms[static_cast<size_t>(rule)]->GetFsm();
    for (const int state : StatesOf(fsm)) {
      at.element_id = state;
      if (fsm.IsScanableState(state)) impl.GetAdaptiveTokenMask(at);
    }
  }
  impl.enable_dynamic_compilation = false;
}

void DecideByCount(xgrammar::CompiledGrammar* compiled) {
  xgrammar::CompiledGrammar::Impl& impl = *compiled->operator->();
  const Bodies bodies(impl.grammar);
  for (auto& [state, mask] : impl.adaptive_token_mask_cache) {
    const Body* body = bodies.Of(state.rule_id);
    if (body == nullptr) continue;
    Decide(*body, body->of.at(state.element_id), bodies.FollowOf(state.rule_id),
           impl.tokenizer_info, &mask);
  }
}

}  // namespace vivace::grammar
