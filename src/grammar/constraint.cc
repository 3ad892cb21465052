#include "grammar/constraint.h"

#include <dlpack/dlpack.h>

#include <algorithm>
#include <array>
#include <exception>

#include "base/limits.h"
#include "sample/token_mask.h"

namespace vivace::grammar {
namespace {

constexpr size_t kMostForcedBytes = 512;

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar,
                                     const CompiledGrammar::ConstraintOptions& options)
    : grammar_(std::move(grammar)),
      options_(options),
      matcher_(grammar_->compiled()),
      tracker_(grammar_->automaton()),
      begun_(options.begin_after < 0) {}

bool GrammarConstraint::FillMask(int32_t remaining, std::span<uint32_t> mask) {
  if (!begun_) return FillBeforeBegin(remaining, mask);
  std::ranges::fill(mask, 0u);
  if (stopped_) {
    for (const TokenId stop : grammar_->vocabulary().stop()) AddToMask(mask, stop);
    return true;
  }
  auto shape =
      static_cast<int64_t>(std::min(MaskWords(grammar_->vocabulary().size()), mask.size()));
  DLTensor tensor = {};
  tensor.data = mask.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = xgrammar::GetBitmaskDLType();
  tensor.shape = &shape;
  try {
    if (!matcher_.FillNextTokenBitmask(&tensor)) {
      const auto words = mask.first(static_cast<size_t>(shape));
      std::ranges::fill(words, ~0u);
      for (TokenId id = grammar_->vocabulary().size(); id < shape * 32; ++id)
        TakeFromMask(mask, id);
    }
    if (NearEnd(remaining)) Steer(remaining, mask);
  } catch (const std::exception&) {
    std::ranges::fill(mask, 0u);  // a fault of ours; the sampler finds nothing to draw
  }
  return true;
}

// Before the grammar holds, the output is free as long as room is left for the token it waits for
// and the shortest output. With less from the start, it is cut either way.
bool GrammarConstraint::FillBeforeBegin(int32_t remaining, std::span<uint32_t> mask) {
  if (remaining != grammar_->shortest_tokens() + 1) return false;
  std::ranges::fill(mask, 0u);
  AddToMask(mask, options_.begin_after);
  steered_ = true;
  return true;
}

bool GrammarConstraint::NearEnd(int32_t remaining) const {
  const Automaton& automaton = *grammar_->automaton();
  if (!automaton.steerable()) return false;
  return tracker_.MostBytes() + automaton.token_growth() > int64_t{remaining} - 1;
}

bool GrammarConstraint::MakePlan() {
  if (plan_known_) return true;
  plan_.clear();
  plan_at_ = 0;
  plan_known_ = tracker_.Shortest(2 * limits::kMaxGrammarShortest, &plan_text_) &&
                grammar_->vocabulary().Tokenize(plan_text_, &plan_);
  return plan_known_;
}

void GrammarConstraint::Steer(int32_t remaining, std::span<uint32_t> mask) {
  // Too few tokens from the start: the output will be cut, and until then it is as it comes.
  if (!MakePlan() || plan_.size() - plan_at_ > static_cast<size_t>(std::max(remaining, 0))) return;
  const bool closed = CloseLong(remaining - 1, mask);
  if (plan_at_ < plan_.size()) AddToMask(mask, plan_[plan_at_]);
  steered_ |= closed;
}

// Whether the shortest rest from the tracker's position takes at most `room` tokens.
bool GrammarConstraint::Fits(int32_t room) {
  const int64_t bytes = tracker_.ShortestBytes();
  if (bytes <= room) return true;
  // It takes fewer tokens than bytes where it ends as the plan does: those bytes are tokenised
  // already, and what differs is spelled byte by byte at worst.
  constexpr int64_t kMostBytesPerToken = 64;
  if (bytes > room * kMostBytesPerToken ||
      !tracker_.Shortest(2 * limits::kMaxGrammarShortest, &rest_)) {
    return false;
  }
  const size_t common = static_cast<size_t>(
      std::mismatch(rest_.rbegin(), rest_.rend(), plan_text_.rbegin(), plan_text_.rend()).first -
      rest_.rbegin());
  int64_t tokens = static_cast<int64_t>(rest_.size());
  size_t tail = 0;  // bytes of the plan's last tokens
  int64_t count = 0;
  for (size_t i = plan_.size(); i-- > 0;) {
    const size_t length = grammar_->vocabulary().BytesOf(plan_[i]).size();
    if (tail + length > common) break;
    tail += length;
    tokens = static_cast<int64_t>(rest_.size() - tail) + ++count;
  }
  return tokens <= room;
}

bool GrammarConstraint::CloseLong(int32_t room, std::span<uint32_t> mask) {
  enum class Byte : uint8_t { kUnknown, kRefused, kSame, kStep };
  struct Level {
    std::array<Byte, 256> bytes;
    bool fits;
  };
  const Vocabulary& vocabulary = grammar_->vocabulary();
  const auto nodes = vocabulary.nodes();
  std::vector<Level> levels(1);  // the positions that are open, the tracker's own first
  levels[0].bytes.fill(Byte::kUnknown);
  levels[0].fits = Fits(room);
  std::vector<int32_t> level_at{0};  // by depth in the trie
  int steps = 0;
  bool closed = false;
  const auto close = [&](TokenId token) {
    for (; token >= 0; token = vocabulary.Twin(token)) {
      closed |= InMask(mask, token);
      TakeFromMask(mask, token);
    }
  };
  for (size_t i = 0; i < nodes.size();) {
    const Vocabulary::Node& node = nodes[i];
    const int32_t parent = level_at[node.depth - 1u];
    Byte& byte = levels[static_cast<size_t>(parent)].bytes[node.byte];
    if (byte == Byte::kRefused) {
      i = static_cast<size_t>(node.end);
      continue;
    }
    if (steps >= kMaxSteps && byte != Byte::kSame) {  // not tried: closed
      for (; i < static_cast<size_t>(node.end); ++i) close(nodes[i].token);
      continue;
    }
    level_at.resize(node.depth + 1u);
    level_at[node.depth] = parent;
    if (byte != Byte::kSame) {
      tracker_.Pop(static_cast<int32_t>(levels.size()) - 1 - parent);
      levels.resize(static_cast<size_t>(parent) + 1);
      ++steps;
      Byte& kind = levels[static_cast<size_t>(parent)].bytes[node.byte];
      if (!tracker_.Advance(node.byte)) {
        kind = Byte::kRefused;
        i = static_cast<size_t>(node.end);
        continue;
      }
      if (tracker_.SameAsBefore()) {
        kind = Byte::kSame;
        tracker_.Pop(1);
      } else {
        kind = Byte::kStep;
        levels.push_back({{}, Fits(room)});
        levels.back().bytes.fill(Byte::kUnknown);
        level_at[node.depth] = parent + 1;
      }
    }
    if (!levels[static_cast<size_t>(level_at[node.depth])].fits) close(node.token);
    ++i;
  }
  tracker_.Pop(static_cast<int32_t>(levels.size()) - 1);
  return closed;
}

bool GrammarConstraint::Accept(TokenId token) {
  if (!begun_) {
    begun_ = token == options_.begin_after;
    return true;
  }
  if (stopped_) return grammar_->vocabulary().IsStop(token);
  try {
    if (!matcher_.AcceptToken(token)) return false;
    if (grammar_->vocabulary().IsStop(token)) {
      stopped_ = true;
      return true;
    }
    if (grammar_->automaton()->steerable() &&
        !tracker_.AdvanceAll(grammar_->vocabulary().BytesOf(token))) {
      return false;
    }
  } catch (const std::exception&) {
    return false;
  }
  if (plan_known_ && plan_at_ < plan_.size() && plan_[plan_at_] == token) {
    ++plan_at_;
  } else {
    plan_known_ = false;
  }
  return true;
}

void GrammarConstraint::Forced(int32_t limit, std::vector<TokenId>* tokens) {
  if (!begun_ || stopped_ || !options_.jump_forward || !grammar_->automaton()->steerable()) return;
  std::string text;
  try {
    while (text.size() < kMostForcedBytes) {
      const auto byte = tracker_.ForcedByte();
      if (!byte || !tracker_.Advance(*byte)) break;
      text.push_back(static_cast<char>(*byte));
    }
    const bool finished = tracker_.Finished();
    tracker_.Pop(static_cast<int32_t>(text.size()));
    if (text.empty() || !MakePlan()) return;
    // The plan begins with that text. Only tokens that stay the same whatever follows.
    size_t end = 0;
    for (size_t i = plan_at_; i < plan_.size() && limit > 0; ++i, --limit) {
      if (!finished && grammar_->vocabulary().MayExtend(text, end)) break;
      end += grammar_->vocabulary().BytesOf(plan_[i]).size();
      if (end > text.size()) break;
      tokens->push_back(plan_[i]);
      if (end == text.size()) break;
    }
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace vivace::grammar
