#include "load/datasets/prompt_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "load/datasets/words.h"

namespace vivace::load {
namespace {

// Drawn at once from the vocabulary; a longer text is drawn in parts.
constexpr size_t kDrawTokens = 4'096;
// After so many rounds of one prompt only words are put behind it: they join without surprises.
constexpr int kRoundsOfAny = 6;

// Characters that can make a control token or a template's mark out of ordinary text, and those
// that servers trim or replace, become spaces.
bool IsPlain(char32_t c) {
  constexpr std::u32string_view kMarks = U"<>[]{}|\u2581\uFEFF";
  return c >= 0x20 && !(c >= 0x7F && c < 0xA0) && c != utf8::kReplacement &&
         kMarks.find(c) == kMarks.npos;
}

std::string Plain(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded d = utf8::Decode(text, pos);
    if (d.valid && IsPlain(d.code_point)) {
      out.append(text.substr(pos, d.length));
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
    pos += d.length;
  }
  return out;
}

void TrimEnd(std::string* text) { text->erase(text->find_last_not_of(" \t\r\n") + 1); }

void Join(std::string* text, std::string_view more) {
  more.remove_prefix(std::min(more.find_first_not_of(' '), more.size()));
  if (!text->empty() && !text->ends_with(' ') && !more.empty()) *text += ' ';
  *text += more;
}

}  // namespace

PromptMaker::PromptMaker(const DatasetOptions& options, TokenCounter* counter,
                         Vocabulary vocabulary)
    : seed_(options.seed),
      chat_(options.chat),
      token_ids_(options.token_ids && !options.chat),
      counter_(counter),
      vocabulary_(vocabulary) {}

Result<PromptMaker> PromptMaker::Create(const DatasetOptions& options, TokenCounter* counter,
                                        Vocabulary vocabulary) {
  PromptMaker maker(options, counter, vocabulary);
  if (counter == nullptr) {
    if (maker.token_ids_) {
      return Fail(ErrorCode::kInvalidArgument, "no_tokenizer", "dataset-name",
                  "prompts of token ids need the server's tokenizer: give --tokenizer");
    }
    return maker;
  }
  VIVACE_RETURN_IF_ERROR(maker.FindSpecialTokens());
  return maker;
}

Status PromptMaker::FindSpecialTokens() {
  // What two texts without a character in common share at their ends. (Encoding no text would tell
  // at once, but servers refuse that.)
  VIVACE_ASSIGN(const auto the, counter_->Encode("the"));
  VIVACE_ASSIGN(const auto man, counter_->Encode("man"));
  const size_t shortest = std::min(the.size(), man.size());
  while (leading_ < shortest && the[leading_] == man[leading_]) ++leading_;
  while (leading_ + trailing_ < shortest &&
         the[the.size() - 1 - trailing_] == man[man.size() - 1 - trailing_]) {
    ++trailing_;
  }
  around_ = static_cast<int32_t>(leading_ + trailing_);
  if (chat_) {
    VIVACE_ASSIGN(around_, counter_->ChatOverhead());
    around_known_ = around_ >= 0;
    around_ = std::max(around_, 0);
  }
  return {};
}

Result<std::string> PromptMaker::Draw(size_t tokens, Vocabulary vocabulary, Random* random) {
  if (counter_ == nullptr || vocabulary == Vocabulary::kWords || counter_->vocab_size() <= 0) {
    return DrawWords(tokens, random);
  }
  std::string text;
  for (size_t left = tokens; left > 0;) {
    std::vector<int32_t> ids(std::min(left, kDrawTokens));
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random->Below(static_cast<size_t>(counter_->vocab_size())));
    }
    VIVACE_ASSIGN(const std::string drawn, counter_->Decode(ids));
    Join(&text, Plain(drawn));
    left -= ids.size();
  }
  TrimEnd(&text);
  return text;
}

Result<std::string> PromptMaker::Cut(std::span<const int32_t> ids, size_t wanted) {
  VIVACE_ASSIGN(const std::string decoded, counter_->Decode(ids.subspan(leading_, wanted)));
  std::string text = Plain(decoded);
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  TrimEnd(&text);
  return text;
}

Result<PromptMaker::Prompt> PromptMaker::Make(uint64_t purpose, int32_t tokens,
                                              std::string_view before) {
  Random random(seed_, purpose);
  Prompt prompt{.text = std::string(before), .ids = {}, .tokens = 0};
  ++made_;
  if (counter_ == nullptr) {
    const auto there = static_cast<int32_t>(std::count(before.begin(), before.end(), ' ')) +
                       (before.empty() ? 0 : 1);
    Join(&prompt.text, DrawWords(static_cast<size_t>(std::max(tokens - there, 0)), &random));
    prompt.tokens = tokens;
    return prompt;
  }
  const auto wanted = static_cast<size_t>(std::max(tokens - around_, 1));
  size_t have = 0;
  for (int round = 0; round < kRounds; ++round) {
    VIVACE_ASSIGN(prompt.ids, counter_->Encode(prompt.text));
    have = prompt.ids.size() - std::min(prompt.ids.size(), leading_ + trailing_);
    if (have == wanted) break;
    if (have > wanted) {
      VIVACE_ASSIGN(prompt.text, Cut(prompt.ids, wanted));
      continue;
    }
    const Vocabulary from = round < kRoundsOfAny ? vocabulary_ : Vocabulary::kWords;
    VIVACE_ASSIGN(const std::string more, Draw(wanted - have, from, &random));
    Join(&prompt.text, more);
  }
  if (have != wanted) {  // the last round changed the text after it was counted
    VIVACE_ASSIGN(prompt.ids, counter_->Encode(prompt.text));
    have = prompt.ids.size() - std::min(prompt.ids.size(), leading_ + trailing_);
    inexact_ += have != wanted;
  }
  prompt.tokens = static_cast<int32_t>(have) + around_;
  return prompt;
}

int32_t PromptMaker::GuessTokens(std::string_view text) {
  constexpr size_t kBytesAToken = 4;
  return static_cast<int32_t>((text.size() + kBytesAToken - 1) / kBytesAToken);
}

Result<int32_t> PromptMaker::OwnTokens(std::string_view text) {
  if (counter_ == nullptr) return GuessTokens(text);
  VIVACE_ASSIGN(const auto ids, counter_->Encode(text));
  return static_cast<int32_t>(ids.size() - std::min(ids.size(), leading_ + trailing_));
}

Result<int32_t> PromptMaker::Count(std::string_view text) {
  VIVACE_ASSIGN(const int32_t own, OwnTokens(text));
  return own + around_;
}

PlannedRequest PromptMaker::Plan(Prompt prompt, int32_t output_tokens) const {
  PlannedRequest request;
  request.prompt_tokens = prompt.tokens;
  request.output_tokens = output_tokens;
  if (chat_) {
    request.prompt = Messages{{"user", std::move(prompt.text)}};
  } else if (token_ids_) {
    request.prompt = std::move(prompt.ids);
  } else {
    request.prompt = std::move(prompt.text);
  }
  return request;
}

Result<size_t> PromptMaker::WordsFor(int32_t tokens) {
  if (counter_ == nullptr) return static_cast<size_t>(tokens);
  if (tokens_a_word_ == 0) {
    constexpr size_t kSample = 512;
    Random random(seed_, 0);
    VIVACE_ASSIGN(const auto ids, counter_->Encode(DrawWords(kSample, &random)));
    tokens_a_word_ = std::max(1.0, static_cast<double>(ids.size()) / kSample);
  }
  return static_cast<size_t>(std::ceil(tokens / tokens_a_word_));
}

std::string PromptMaker::Remark() const {
  if (counter_ == nullptr) return " (lengths approximate: no tokenizer)";
  if (inexact_ > 0) {
    return fmt::format(" ({} of {} prompts not of their exact length)", inexact_, made_);
  }
  return around_known_ ? "" : " (input lengths without the chat template)";
}

}  // namespace vivace::load
