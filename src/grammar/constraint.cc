#include "grammar/constraint.h"

#include <algorithm>
#include <exception>

#include "base/clock.h"
#include "base/limits.h"
#include "grammar/backend.h"
#include "sample/token_mask.h"

namespace vivace::grammar {
namespace {

constexpr size_t kMostForcedBytes = 512;
constexpr size_t kMostRest = 2 * limits::kMaxGrammarShortest;  // bytes
constexpr int64_t kMostTokenBytes = 64;  // of a token in a plan, where plans are judged by bytes

// Sets `over` where this thread computes for longer than a call may while it stands.
class CallTimer {
 public:
  explicit CallTimer(bool* over) : over_(over) {}
  ~CallTimer() {
    const int64_t took = ReadClock(CLOCK_THREAD_CPUTIME_ID) - start_;
    if (took > limits::kMaxConstraintCallMs * kNanosPerMs) *over_ = true;
  }
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

 private:
  bool* over_;
  const int64_t start_ = ReadClock(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar,
                                     const CompiledGrammar::ConstraintOptions& options)
    : grammar_(std::move(grammar)),
      options_(options),
      matcher_(grammar_->compiled()),
      tracker_(grammar_->automaton()),
      begun_(options.begin_after < 0),
      spelling_(grammar_->vocabulary()) {}

bool GrammarConstraint::FillMask(int32_t remaining, std::span<uint32_t> mask) {
  if (!begun_) return FillBeforeBegin(remaining, mask);
  if (stopped_ || too_costly_) {
    FillWithStops(mask);
    return true;
  }
  const CallTimer timer(&too_costly_);
  std::ranges::fill(mask, 0u);
  const int32_t vocabulary = grammar_->vocabulary().size();
  const auto words = mask.first(std::min(MaskWords(vocabulary), mask.size()));
  try {
    if (!FillTokenMask(&matcher_, words)) {
      std::ranges::fill(words, ~0u);
      for (TokenId id = vocabulary; id < std::ssize(words) * 32; ++id) TakeFromMask(mask, id);
    }
  } catch (const std::exception&) {
    std::ranges::fill(mask, 0u);  // a fault of ours; the sampler finds nothing to draw
  }
  return true;
}

void GrammarConstraint::FillWithStops(std::span<uint32_t> mask) const {
  std::ranges::fill(mask, 0u);
  for (const TokenId stop : grammar_->vocabulary().stop()) AddToMask(mask, stop);
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

bool GrammarConstraint::MakePlan() {
  if (plan_known_) return true;
  plan_.clear();
  plan_at_ = 0;
  if (!tracker_.Shortest(kMostRest, &rest_)) return false;
  spelling_.Set(rest_);
  if (spelling_.tokens() == TokenSpelling::kNone) return false;
  spelling_.Append(&plan_);
  return plan_known_ = true;
}

bool GrammarConstraint::Affords(TokenId token, int32_t remaining, std::span<uint32_t> mask) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (!begun_ || stopped_ || too_costly_ || !Steerable() || vocabulary.IsStop(token)) return true;
  const CallTimer timer(&too_costly_);
  try {
    // Where the known rest does not fit, the output has had too few tokens from the start: it will
    // be cut, and until then it is as it comes.
    if (FitsBehind(token, remaining - 1) || !MakePlan() || PlanLeft() > remaining) return true;
    if (PlanLeft() > 0 ? plan_[plan_at_] == token : vocabulary.stop().empty()) return true;
    Narrow(token, remaining, mask);
    return false;
  } catch (const std::exception&) {
    return true;  // no memory: it may be cut
  }
}

// Whether the shortest rest after `token` takes at most `room` tokens.
bool GrammarConstraint::FitsBehind(TokenId token, int32_t room) {
  const int32_t steps = tracker_.AdvanceToken(token, grammar_->vocabulary().BytesOf(token));
  if (steps == Tracker::kLost) return true;  // Accept says what is wrong
  const int64_t least = tracker_.ShortestBytes();
  bool fits = least <= room;  // a byte is a token at worst
  if (!fits && least <= room * kMostTokenBytes && tracker_.Shortest(kMostRest, &rest_)) {
    spelling_.Set(rest_);
    fits = spelling_.tokens() <= room;
  }
  tracker_.Pop(steps);
  return fits;
}

// What is drawn from next: what was without the token or, where no token can be spared or several
// were drawn in vain, the known rest alone.
void GrammarConstraint::Narrow(TokenId token, int32_t remaining, std::span<uint32_t> mask) {
  steered_ = true;
  if (PlanLeft() < remaining && ++redraws_ < kMostRedraws) {
    TakeFromMask(mask, token);
  } else if (PlanLeft() > 0) {
    std::ranges::fill(mask, 0u);
    AddToMask(mask, plan_[plan_at_]);
  } else {
    FillWithStops(mask);
  }
}

bool GrammarConstraint::Accept(TokenId token) {
  if (!begun_) {
    begun_ = token == options_.begin_after;
    return true;
  }
  if (too_costly_) return false;
  const CallTimer timer(&too_costly_);
  redraws_ = 0;
  if (stopped_) return grammar_->vocabulary().IsStop(token);
  try {
    if (!matcher_.AcceptToken(token)) return false;
    if (grammar_->vocabulary().IsStop(token)) {
      stopped_ = true;
      return true;
    }
    if (Steerable() &&
        tracker_.AdvanceToken(token, grammar_->vocabulary().BytesOf(token)) == Tracker::kLost) {
      if (!grammar_->automaton()->names_tokens()) return false;
      lost_ = true;
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
  if (!begun_ || stopped_ || too_costly_ || !options_.jump_forward || !Steerable()) return;
  const CallTimer timer(&too_costly_);
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
