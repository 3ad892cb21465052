#include "text/decoder.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_data.h"

namespace vivace {
namespace {

struct Rewrite {
  std::string_view from, to;
};
// In this order, each over the whole token.
constexpr Rewrite kCleanups[] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                 {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                 {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                 {" 've", "'ve"}, {" 're", "'re"}};

void ReplaceAll(const Rewrite& rewrite, std::string* text) {
  std::string out;
  size_t taken = 0;
  for (size_t at; (at = text->find(rewrite.from, taken)) != std::string::npos;) {
    out.append(*text, taken, at - taken).append(rewrite.to);
    taken = at + rewrite.from.size();
  }
  if (taken == 0) return;
  *text = out.append(*text, taken);
}

size_t CountAtBegin(std::string_view text, std::string_view unit, size_t at_most) {
  size_t count = 0;
  for (; count < at_most && text.starts_with(unit); ++count) text.remove_prefix(unit.size());
  return count;
}
size_t CountAtEnd(std::string_view text, std::string_view unit, size_t at_most) {
  size_t count = 0;
  for (; count < at_most && text.ends_with(unit); ++count) text.remove_suffix(unit.size());
  return count;
}

bool IsFuse(const DecoderStep& step) {
  return std::holds_alternative<decode::Fuse>(step) ||
         std::holds_alternative<decode::ByteLevel>(step);
}

// Whether a step gives the same for a token in parts as for the whole.
bool WorksOnParts(const DecoderStep& step) {
  return IsFuse(step) || std::holds_alternative<decode::Strip>(step) ||
         std::holds_alternative<decode::Metaspace>(step) ||
         std::holds_alternative<decode::Join>(step);
}

}  // namespace

Decoder::Decoder(std::vector<DecoderStep> steps) : steps_(std::move(steps)) {
  only_byte_level_ = steps_.size() == 1 && std::holds_alternative<decode::ByteLevel>(steps_[0]);
  bool fused = false;
  for (const DecoderStep& step : steps_) {
    waits_for_all_ |= fused && !WorksOnParts(step);
    fused |= IsFuse(step);
    has_byte_fallback_ |= std::holds_alternative<decode::ByteFallback>(step);
  }
}

// One step; `part` is of its input, `Next` hands on its output.
struct Decoder::Stream::Feeder {
  Stream* stream;
  size_t step;
  Part part;
  std::string* out;

  State& state() const { return stream->states_[step]; }
  void Next(Part next) const { stream->Feed(step + 1, next, out); }

  void operator()(const decode::ByteLevel&) const {
    State& s = state();
    // Text that is not in the alphabet stands for itself.
    s.held.append(BytesFromAlphabet(part.text).value_or(std::string(part.text)));
    FlushBytes();
  }
  void FlushBytes() const {
    State& s = state();
    s.made.clear();
    s.held.erase(0, utf8::AppendRepaired(s.held, &s.made));
    Next({s.made, !std::exchange(s.open, true), false});
  }
  void operator()(const decode::Fuse&) const {
    Next({part.text, !std::exchange(state().open, true), false});
  }
  void operator()(const decode::Join&) const {
    if (part.begins && state().index++ > 0) Next({" ", true, true});
    Next(part);
  }
  void operator()(const decode::ByteFallback&) const {
    State& s = state();
    if (const auto byte = ParseByteToken(part.text)) {
      s.held.push_back(static_cast<char>(*byte));
      return;
    }
    FlushRun();
    Next(part);
  }
  // A run is its text if it is valid, else a U+FFFD for every byte.
  void FlushRun() const {
    State& s = state();
    if (s.held.empty()) return;
    s.made.clear();
    if (utf8::IsValid(s.held)) {
      s.made = s.held;
      s.held.clear();
      return Next({s.made, true, true});
    }
    const size_t count = s.held.size();
    s.held.clear();
    for (size_t i = 0; i < count; ++i) Next({utf8::kReplacementBytes, true, true});
  }
  void operator()(const decode::Metaspace& d) const {
    State& s = state();
    if (part.begins) ++s.index;
    s.made.assign(part.text);
    const bool drop = s.index == 1 && d.strip_first;
    ReplaceAll({d.replacement, drop ? "" : " "}, &s.made);
    Next({s.made, part.begins, part.ends});
  }
  void operator()(const decode::Replace& d) const {
    State& s = state();
    s.made.clear();
    d.pattern.Replace(part.text, d.content, &s.stretches, &s.made);
    Next({s.made, part.begins, part.ends});
  }
  // The begin is stripped as it comes; what the end may strip waits.
  void operator()(const decode::Strip& d) const {
    State& s = state();
    if (part.begins) s.stripped = 0;
    std::string_view text = part.text;
    if (s.stripped < d.start && !text.empty()) {
      const size_t count = CountAtBegin(text, d.content, d.start - s.stripped);
      text.remove_prefix(count * d.content.size());
      s.stripped = text.empty() ? s.stripped + count : d.start;
    }
    s.made.assign(s.held).append(text);
    const size_t tail = CountAtEnd(s.made, d.content, d.stop) * d.content.size();
    s.held.assign(part.ends ? 0 : tail, '\0');
    if (!part.ends) s.made.copy(s.held.data(), tail, s.made.size() - tail);
    s.made.resize(s.made.size() - tail);
    Next({s.made, part.begins, part.ends});
  }
  void operator()(const decode::WordPiece& d) const {
    State& s = state();
    s.made.assign(part.text);
    if (s.index++ > 0) {
      if (s.made.starts_with(d.prefix)) {
        s.made.erase(0, d.prefix.size());
      } else {
        s.made.insert(0, " ");
      }
    }
    if (d.cleanup) {
      for (const Rewrite& rewrite : kCleanups) ReplaceAll(rewrite, &s.made);
    }
    Next({s.made, true, true});
  }
  // The last token's suffix is nothing, the others' a space: one token waits.
  void operator()(const decode::Bpe& d) const {
    FlushWord(d, " ");
    state().held.assign(part.text);
    state().waits = true;
  }
  void FlushWord(const decode::Bpe& d, std::string_view suffix) const {
    State& s = state();
    if (!std::exchange(s.waits, false)) return;
    s.made.swap(s.held);
    s.held.clear();
    if (!d.suffix.empty()) ReplaceAll({d.suffix, suffix}, &s.made);
    Next({s.made, true, true});
  }
};

double Decoder::MostGrowth() const {
  double growth = 1;
  for (const DecoderStep& step : steps_) {
    if (const auto* replace = std::get_if<decode::Replace>(&step)) {
      growth *= replace->pattern.MostGrowth(replace->content);
    }
  }
  return growth;
}

Decoder::Stream::Stream(const Decoder& decoder, bool inside)
    : decoder_(decoder), states_(decoder.steps_.size()) {
  if (!inside) return;
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].index = 1;
    if (const auto* strip = std::get_if<decode::Strip>(&decoder.steps_[i])) {
      states_[i].stripped = strip->start;
    }
    states_[i].open = IsFuse(decoder.steps_[i]);
  }
}

// Nested as deep as the chain is long.
void Decoder::Stream::Feed(size_t step, Part part, std::string* out) {
  if (step == decoder_.steps_.size()) {
    out->append(part.text);
    return;
  }
  if (decoder_.waits_for_all_ && !(part.begins && part.ends) &&
      !WorksOnParts(decoder_.steps_[step])) {
    State& state = states_[step];
    state.held.append(part.text);
    if (!part.ends) return;
    const std::string whole = std::exchange(state.held, {});
    std::visit(Feeder{this, step, {whole, true, true}, out}, decoder_.steps_[step]);
    return;
  }
  std::visit(Feeder{this, step, part, out}, decoder_.steps_[step]);
}

void Decoder::Stream::End(size_t step, std::string* out) {
  State& state = states_[step];
  const Feeder feeder{this, step, {}, out};
  if (std::holds_alternative<decode::ByteFallback>(decoder_.steps_[step])) feeder.FlushRun();
  if (const auto* bpe = std::get_if<decode::Bpe>(&decoder_.steps_[step])) {
    feeder.FlushWord(*bpe, "");
  }
  if (!IsFuse(decoder_.steps_[step])) return;
  // All the tokens were one; here it ends.
  const bool cut = !state.held.empty();
  state.held.clear();
  const bool begun = std::exchange(state.open, false);
  feeder.Next({cut ? utf8::kReplacementBytes : std::string_view(), !begun, true});
}

void Decoder::Stream::Push(std::string_view token, std::string* out) {
  Feed(0, {token, true, true}, out);
}

void Decoder::Stream::Finish(std::string* out) {
  for (size_t step = 0; step < states_.size(); ++step) End(step, out);
  for (State& state : states_) {
    state.index = state.stripped = 0;
    state.held.clear();
    state.waits = state.open = false;
  }
}

bool Decoder::Stream::holds_back() const {
  return std::ranges::any_of(states_,
                             [](const State& state) { return !state.held.empty() || state.waits; });
}

}  // namespace vivace
