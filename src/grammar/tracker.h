// Follows an output byte by byte and knows the shortest rest of it at every point.
//
// xgrammar's parser (Earley's, over the automata) with, for each position, the least bytes behind
// every rule that was begun there. One per output, one thread at a time. Advance
// takes about a microsecond.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "earley_parser.h"  // xgrammar's
#include "grammar/automaton.h"

namespace vivace::grammar {

class Tracker : private xgrammar::EarleyParser {
 public:
  explicit Tracker(std::shared_ptr<const Automaton> automaton);

  // False: the byte may not follow; nothing has changed.
  bool Advance(uint8_t byte);
  void Pop(int32_t count);
  bool AdvanceAll(std::string_view bytes);  // all or nothing
  // By a token of these bytes, or one that the grammar names: what Pop takes to undo it. kLost: it
  // may not follow, or is both its bytes and named, and only one of these ways could be followed.
  static constexpr int32_t kLost = -1;
  int32_t AdvanceToken(TokenId token, std::string_view bytes);

  // The output is complete as it is; more may follow unless Finished.
  bool Complete() const { return IsCompleted(); }
  bool Finished() const { return IsCompleted() && LatestStates().size() == 0; }

  // Bytes of the shortest rest, 0 where the output is complete. Automaton::kNever: there is none.
  int64_t ShortestBytes() const;
  // That text; false: longer than `most` bytes.
  bool Shortest(size_t most, std::string* text) const;

  // The byte that must follow, if there is but one and the output isn't complete.
  std::optional<uint8_t> ForcedByte() const;

 private:
  using State = xgrammar::ParserState;
  using States = xgrammar::Compact2DArray<State>::Row;

  // What is behind a rule that was begun at a position.
  struct Behind {
    int32_t rule;
    int32_t parent;  // the entry of the row that `least` is by; -1: none
    int64_t least;
  };

  States LatestStates() const {
    return scanable_state_history_[scanable_state_history_.size() - 1];
  }
  int32_t position() const { return static_cast<int32_t>(scanable_state_history_.size()) - 1; }
  void FindBehind();
  bool Improve(Behind* behind);
  const Behind* BehindOf(int32_t rule, int32_t position) const;
  // From a completed rule's parent on: its own rest (`again`: the times a repeat must still run).
  int64_t RestOf(const State& parent, int32_t completed, int64_t* again) const;
  // To the end of the output through a state.
  int64_t CostBy(const State& state) const;
  const State* Cheapest() const;

  std::shared_ptr<const Automaton> automaton_;
  std::vector<Behind> behind_;  // of all positions, one after the other
  std::vector<size_t> begin_;   // where a position's begin
};

}  // namespace vivace::grammar
