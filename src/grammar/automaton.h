// How short the rest of an output can be: the least number of bytes from every state of a compiled
// grammar to the end of its rule.
//
// xgrammar's compiled grammar is a set of automata, one for each rule, whose edges are bytes or
// other rules. The least costs are Knuth's generalisation of Dijkstra's algorithm to such systems
// ("A Generalization of Dijkstra's Algorithm", 1977). Only bytes that are tokens by themselves are
// counted on, so that a rest of n bytes never takes more than n tokens.
//
// A named token costs one. Immutable and shared. Building is O(edges log edges). Relies on the
// inner headers of the xgrammar version that cmake/Xgrammar.cmake fetches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/vocabulary.h"

// xgrammar's.
#include "compiled_grammar_impl.h"
#include "fsm.h"
#include "grammar_impl.h"

namespace vivace::grammar {

class Automaton {
 public:
  static constexpr int64_t kNever = int64_t{1} << 40;

  Automaton(xgrammar::Grammar grammar, const Vocabulary& vocabulary);

  const xgrammar::Grammar& grammar() const { return grammar_; }

  // To the end of the rule that the state is of; kNever: it has none.
  int64_t CostOf(int32_t state) const { return costs_[static_cast<size_t>(state)]; }
  int64_t RuleCost(int32_t rule) const { return CostOf(StartOf(rule)); }

  int32_t StartOf(int32_t rule) const { return starts_[static_cast<size_t>(rule)]; }

  // The repeat that a state waits in, if it does: states with one have no other edge.
  struct Repeat {
    int32_t rule = -1, lower = 0, target = 0;
  };
  Repeat RepeatAt(int32_t state) const;

  // Appends the shortest text from the state to the end of its rule, with a NamedToken for each
  // token that the grammar names. False: `most` bytes are exceeded, or any of many tokens is called
  // for.
  bool AppendShortest(int32_t state, size_t most, std::string* text) const;

  // Whether the rest can be known: not where the grammar counts tokens or characters.
  bool steerable() const { return steerable_; }
  // Whether the grammar names tokens by their ids, as it does with control tokens.
  bool names_tokens() const { return grammar_->has_token_edges; }

  // The name of a rule in use that cannot end; empty: all can.
  std::string EndlessRule() const;
  // The name of a rule that may begin with itself; empty: there is none.
  std::string LeftRecursiveRule() const;

 private:
  using Edges = xgrammar::Compact2DArray<xgrammar::FSMEdge>::Row;
  Edges EdgesOf(int32_t state) const { return grammar_->complete_fsm.GetEdges(state); }
  size_t states() const { return costs_.size(); }
  void FindCosts(const Vocabulary& vocabulary);
  int64_t EdgeCost(const xgrammar::FSMEdge& edge, const Vocabulary& vocabulary) const;

  xgrammar::Grammar grammar_;
  std::vector<int32_t> starts_;     // by rule
  std::vector<int32_t> rule_of_;    // by state; -1: of none
  std::vector<bool> is_end_;        // by state
  std::vector<int64_t> costs_;      // by state
  std::vector<int32_t> best_edge_;  // by state: the first edge of the shortest way, -1 at an end
  std::vector<uint8_t> best_byte_;  // where that edge is bytes
  bool steerable_ = true;
};

}  // namespace vivace::grammar
