#include "text/word_cutter.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace vivace {
namespace {

using cut::Behavior;
using Piece = WordCutter::Scratch::Piece;

// Merges stretches as a Split's behaviour says; what is left are the pieces of one text.
void MergeStretches(Behavior behavior, std::vector<Stretch>* stretches) {
  if (behavior == Behavior::kIsolated) return;
  if (behavior == Behavior::kRemoved) {
    std::erase_if(*stretches, [](const Stretch& stretch) { return stretch.match; });
    return;
  }
  const bool backwards = behavior == Behavior::kMergedWithNext;
  if (backwards) std::ranges::reverse(*stretches);
  bool last_matched = false;
  size_t kept = 0;
  for (const Stretch stretch : *stretches) {
    const bool merge = behavior == Behavior::kContiguous ? stretch.match == last_matched
                                                         : stretch.match && !last_matched;
    last_matched = stretch.match;
    if (merge && kept > 0) {
      Stretch& into = (*stretches)[kept - 1];
      (backwards ? into.begin : into.end) = backwards ? stretch.begin : stretch.end;
    } else {
      (*stretches)[kept++] = stretch;
    }
  }
  stretches->resize(kept);
  if (backwards) std::ranges::reverse(*stretches);
}

}  // namespace

std::vector<CutterStep> BertCutter() {
  return {cut::Split{TextPattern(CharKind::kSpace), Behavior::kRemoved},
          cut::Split{TextPattern(CharKind::kPunctuation), Behavior::kIsolated}};
}

// One step over the pieces of scratch->text.
struct WordCutter::Applier {
  Scratch* scratch;
  bool first;      // the whole input begins with the text
  bool more_cuts;  // steps follow

  void operator()(const cut::Split& step) const {
    ForEachPiece([&](Piece piece) { CutPiece(step, piece); });
  }
  void operator()(const cut::FixedLength& step) const {
    ForEachPiece([&](Piece piece) {
      size_t begin = piece.begin, count = 0;
      for (size_t at = piece.begin; at < piece.end;) {
        at += utf8::Decode(std::string_view(scratch->text).substr(0, piece.end), at).length;
        if (++count % step.length != 0 && at < piece.end) continue;
        scratch->cut.push_back({begin, at});
        begin = at;
      }
    });
  }
  void operator()(const cut::Metaspace& step) const {
    Rewrite([&](size_t begin, std::string_view text, std::string* out) {
      const bool wanted = step.prepend == cut::Prepend::kAlways ||
                          (step.prepend == cut::Prepend::kFirst && first && begin == 0);
      if (wanted && !text.starts_with(' ') && !text.starts_with(step.replacement)) {
        out->append(step.replacement);
      }
      for (const char c : text) {
        if (c == ' ') {
          out->append(step.replacement);
        } else {
          out->push_back(c);
        }
      }
    });
    if (!step.split) return;
    (*this)(cut::Split{TextPattern(step.replacement), Behavior::kMergedWithNext, false});
  }
  void operator()(const cut::ByteLevel& step) const {
    if (step.add_prefix_space) {
      Rewrite([](size_t, std::string_view text, std::string* out) {
        if (!text.starts_with(' ')) out->push_back(' ');
        out->append(text);
      });
    }
    if (step.use_regex) {
      (*this)(cut::Split{TextPattern(Pretokenizer::kGpt2), Behavior::kIsolated, false});
    }
    if (more_cuts) {
      Rewrite([](size_t, std::string_view text, std::string* out) {
        out->append(AlphabetFromBytes(text));
      });
    }
  }

 private:
  template <typename Cut>
  void ForEachPiece(Cut cut) const {
    scratch->cut.clear();
    for (const Piece piece : scratch->pieces) cut(piece);
    scratch->pieces.swap(scratch->cut);
  }

  void CutPiece(const cut::Split& step, Piece piece) const {
    auto& stretches = scratch->stretches;
    stretches.clear();
    step.pattern.FindAll(
        std::string_view(scratch->text).substr(piece.begin, piece.end - piece.begin), &stretches);
    if (step.invert) {
      for (Stretch& stretch : stretches) stretch.match = !stretch.match;
    }
    MergeStretches(step.behavior, &stretches);
    for (const Stretch& stretch : stretches) {
      if (stretch.begin == stretch.end) continue;
      scratch->cut.push_back({piece.begin + stretch.begin, piece.begin + stretch.end});
    }
  }

  // Every piece by what `write(begin, text, out)` appends for it.
  template <typename Write>
  void Rewrite(Write write) const {
    scratch->changed.clear();
    for (Piece& piece : scratch->pieces) {
      const size_t begin = scratch->changed.size();
      write(piece.begin,
            std::string_view(scratch->text).substr(piece.begin, piece.end - piece.begin),
            &scratch->changed);
      piece = {begin, scratch->changed.size()};
    }
    scratch->text.swap(scratch->changed);
  }
};

WordCutter::WordCutter(std::vector<CutterStep> steps) : steps_(std::move(steps)) {
  const size_t count = steps_.size();
  for (size_t i = 0; i < count; ++i) {
    if (!std::holds_alternative<cut::ByteLevel>(steps_[i])) continue;
    alphabet_ = byte_level_ || i + 1 < count;
    byte_level_ = true;
  }
  if (!byte_level_ || alphabet_ || count > 2) return;
  const auto& bytes = std::get<cut::ByteLevel>(steps_.back());
  if (bytes.add_prefix_space) return;
  if (count == 1) {
    if (bytes.use_regex) scanner_ = Pretokenizer::kGpt2;
    return;
  }
  const auto* split = std::get_if<cut::Split>(&steps_[0]);
  if (split == nullptr || bytes.use_regex || split->pattern.scanner() == nullptr) return;
  // A scanner's matches tile the text, so keeping only the matches keeps all.
  const bool keeps_all = split->invert ? split->behavior == Behavior::kRemoved
                                       : split->behavior == Behavior::kIsolated;
  if (keeps_all) scanner_ = *split->pattern.scanner();
}

void WordCutter::Cut(std::string_view text, bool first, Scratch* scratch) const {
  scratch->text.assign(text);
  scratch->pieces.assign(text.empty() ? 0 : 1, {0, text.size()});
  for (const CutterStep& step : steps_) {
    std::visit(Applier{scratch, first, &step != &steps_.back()}, step);
  }
  if (!alphabet_) return;
  // The model sees bytes again: a character of the alphabet is one.
  scratch->changed.clear();
  for (Piece& piece : scratch->pieces) {
    const std::string_view letters =
        std::string_view(scratch->text).substr(piece.begin, piece.end - piece.begin);
    const size_t begin = scratch->changed.size();
    scratch->changed.append(BytesFromAlphabet(letters).value_or(""));
    piece = {begin, scratch->changed.size()};
  }
  scratch->text.swap(scratch->changed);
}

}  // namespace vivace
