#include "text/regex.h"

#include <algorithm>

#include "base/utf8.h"

namespace vivace {
namespace {

constexpr size_t kBlock = 64;  // positions that share a word of the memo

// The character before `position` > 0.
char32_t CharacterBefore(std::string_view text, size_t position) {
  size_t begin = position - 1;
  while (begin > 0 && position - begin < 4 &&
         (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  const utf8::Decoded c = utf8::Decode(text, begin);
  return begin + c.length == position ? c.code_point : utf8::kReplacement;
}

}  // namespace

void Regex::Matcher::Reset(std::string_view text) {
  text_ = text;
  next_ = 0;
  last_end_.reset();
  stack_.clear();
  first_block_ = 0;
  memo_.clear();
  known_runs_.assign(regex_.runs_, {1, 0});
}

std::optional<Regex::Match> Regex::Matcher::Next() {
  for (; next_ <= text_.size();
       next_ += next_ < text_.size() ? utf8::Decode(text_, next_).length : 1) {
    // What was noted lies all behind: forget it.
    if (!memo_.empty() && first_block_ + memo_.size() / regex_.splits_ <= next_ / kBlock) {
      memo_.clear();
    }
    if (memo_.empty()) first_block_ = next_ / kBlock;
    const auto end = Run(0, next_);
    if (!end || (*end == next_ && last_end_ == next_)) continue;
    const Match match = {next_, *end};
    last_end_ = next_ = *end;
    return match;
  }
  return std::nullopt;
}

bool Regex::Matcher::HasFailed(uint32_t split, size_t position) const {
  const size_t word = (position / kBlock - first_block_) * regex_.splits_ + split;
  return word < memo_.size() && (memo_[word] >> (position % kBlock) & 1) != 0;
}

void Regex::Matcher::NoteFailed(uint32_t split, size_t position) {
  const size_t block = position / kBlock - first_block_;
  if (memo_.size() <= block * regex_.splits_) memo_.resize((block + 1) * regex_.splits_);
  memo_[block * regex_.splits_ + split] |= uint64_t{1} << (position % kBlock);
}

// A run holds for every position inside it, so each is walked once.
size_t Regex::Matcher::RunEnd(uint32_t run, const CharClass& set, size_t position) {
  Match& known = known_runs_[run];
  if (known.begin <= position && position <= known.end) return known.end;
  known.begin = position;
  while (position < text_.size()) {
    const utf8::Decoded c = utf8::Decode(text_, position);
    if (!set.Contains(c.code_point)) break;
    position += c.length;
  }
  return known.end = position;
}

bool Regex::Holds(const Instruction& i, std::string_view text, size_t position) const {
  const bool at_begin = position == 0, at_end = position == text.size();
  switch (i.op) {
    case Op::kBehind:
      return (!at_begin && classes_[i.a].Contains(CharacterBefore(text, position))) != i.negative;
    case Op::kLineBegin:
      return at_begin || (text[position - 1] == '\n' && !at_end);
    case Op::kLineEnd:
      return at_end || text[position] == '\n';
    case Op::kTextBegin:
      return at_begin;
    case Op::kTextEnd:
      return at_end;
    case Op::kTextEndOrNewline:
      return at_end || (text[position] == '\n' && position + 1 == text.size());
    default: {  // kWordEdge
      const bool before = !at_begin && classes_[i.a].Contains(CharacterBefore(text, position));
      const bool after = !at_end && classes_[i.a].Contains(utf8::Decode(text, position).code_point);
      return (before != after) != i.negative;
    }
  }
}

// The next character often leaves one way only. A loop that goes on is noted all the same: a text
// that is walked in vain must not be walked again.
bool Regex::Matcher::Split(const Instruction& i, uint32_t* pc, size_t position) {
  const auto next = position < text_.size() ? static_cast<unsigned char>(text_[position]) : 0xFF;
  const bool ascii = next < 0x80;
  const bool other = !ascii || regex_.CanBegin(i.b, next);
  const bool preferred = !ascii || regex_.CanBegin(i.a, next);
  *pc = preferred ? i.a : i.b;
  if (!preferred && !other) return false;
  const bool both = preferred && other;
  if (!both && !i.loops) return true;
  if (HasFailed(i.number, position)) return false;
  stack_.push_back({kFailed | i.number, static_cast<uint32_t>(position)});
  if (both) stack_.push_back({i.b, static_cast<uint32_t>(position)});
  return true;
}

// One instruction; false if it does not match.
bool Regex::Matcher::Step(uint32_t* pc, size_t* position) {
  const Instruction& i = regex_.program_[*pc];
  switch (i.op) {
    case Op::kChar:
    case Op::kMaybe: {
      const bool more = *position < text_.size();
      const utf8::Decoded c = more ? utf8::Decode(text_, *position) : utf8::Decoded{};
      const bool in = more && regex_.classes_[i.a].Contains(c.code_point);
      if (!in && i.op == Op::kChar) return false;
      if (in) *position += c.length;
      break;
    }
    case Op::kRun:
      *position = RunEnd(i.b, regex_.classes_[i.a], *position);
      break;
    case Op::kSplit:
      return Split(i, pc, *position);
    case Op::kJump:
      *pc = i.a;
      return true;
    case Op::kLook:
      if (Run(*pc + 1, *position).has_value() == i.negative) return false;
      *pc = i.a;
      return true;
    default:
      if (!regex_.Holds(i, text_, *position)) return false;
  }
  ++*pc;
  return true;
}

// Nested only for look-aheads, whose depth is the pattern's.
std::optional<size_t> Regex::Matcher::Run(uint32_t pc, size_t position) {
  const size_t base = stack_.size();
  for (;;) {
    if (regex_.program_[pc].op == Op::kAccept) {
      stack_.resize(base);
      return position;
    }
    if (Step(&pc, &position)) continue;
    for (;;) {
      if (stack_.size() == base) return std::nullopt;
      const Job job = stack_.back();
      stack_.pop_back();
      if ((job.pc & kFailed) != 0) {
        NoteFailed(job.pc & ~kFailed, job.position);
        continue;
      }
      pc = job.pc;
      position = job.position;
      break;
    }
  }
}

}  // namespace vivace
