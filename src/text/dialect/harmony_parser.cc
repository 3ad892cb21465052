#include "text/dialect/harmony_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "text/dialect/json_text.h"
#include "text/dialect/mark_match.h"
#include "text/dialect/tool_set.h"

namespace vivace::dialect {
namespace {

constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kRecipient = "to=";
constexpr std::string_view kFunctions = "functions.";

constexpr std::string_view kMarks[] = {kStart,    kChannel,   kMessage,    "<|constrain|>",
                                       "<|end|>", "<|call|>", "<|return|>"};
// Those that end a message's text; the first two begin the next one.
constexpr std::string_view kEnds[] = {kStart, kChannel, "<|end|>", "<|call|>", "<|return|>"};
// How the rest of a header may begin.
constexpr std::string_view kBegins[] = {kStart, kChannel, kMessage, "<|constrain|>", " to=", "to="};

bool MayBeHeader(std::string_view text) {
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view begin) {
    return begin.starts_with(text) || text.starts_with(begin);
  });
}

// The word behind the last `mark` of a header.
std::string_view WordBehind(std::string_view header, std::string_view mark) {
  const size_t found = header.rfind(mark);
  if (found == std::string_view::npos) return {};
  header.remove_prefix(found + mark.size());
  return header.substr(0, std::min(header.find_first_of(" \n\t<"), header.size()));
}

std::string WithoutMarks(std::string_view text) {
  std::string out(text);
  for (const std::string_view mark : kMarks) {
    for (size_t at = 0; (at = out.find(mark, at)) != std::string::npos;) out.erase(at, mark.size());
  }
  return out;
}

}  // namespace

void HarmonyParser::Feed(std::string_view text, std::vector<OutputPiece>* pieces) {
  sink_.set_pieces(pieces);
  for (const char c : text) {
    if (body_) {
      TakeBody(c);
    } else {
      TakeHeader(c);
    }
  }
}

void HarmonyParser::TakeHeader(char c) {
  header_ += c;
  if (header_.ends_with(kMessage)) {
    BeginMessage();
    return;
  }
  if (MayBeHeader(header_) && header_.size() <= limits::kMaxCallHeaderBytes) return;
  // Text without a header: an answer, as far as anyone can tell.
  body_ = true;
  kind_ = PieceKind::kContent;
  said_ = false;
  const std::string text = std::exchange(header_, {});
  if (!TrimSpace(text).empty()) {
    for (const char later : text) TakeBody(later);
  } else {
    body_ = false;  // white space between messages
  }
}

void HarmonyParser::BeginMessage() {
  std::string_view recipient = WordBehind(header_, kRecipient);
  const std::string_view channel = WordBehind(header_, kChannel);
  body_ = true;
  said_ = whole_call_ = false;
  if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
  if (reads_calls_ && IsCallName(recipient)) {
    kind_ = PieceKind::kToolArguments;
    sink_.BeginCall(std::string(recipient));
    arguments_.emplace();
  } else {
    kind_ = channel == "analysis" ? PieceKind::kReasoning : PieceKind::kContent;
  }
  header_.clear();
}

void HarmonyParser::Say(std::string_view text) {
  const bool first = !std::exchange(said_, true);
  if (kind_ != PieceKind::kToolArguments) whole_call_ = false;
  switch (kind_) {
    case PieceKind::kReasoning:
      if (first && thought_) sink_.Reasoning("\n");
      thought_ = true;
      sink_.Reasoning(text);
      return;
    case PieceKind::kContent:
      if (first && content_) sink_.Content("\n");
      content_ = true;
      sink_.Content(text);
      return;
    default:
      sink_.Arguments(text);
      for (const char c : text) FollowArguments(c);
  }
}

// Whether the arguments are complete. White space around them does not count.
void HarmonyParser::FollowArguments(char c) {
  const bool outside = whole_call_ || (arguments_ && arguments_->AtBegin());
  if (outside && IsJsonSpace(c)) return;
  if (!arguments_) {
    whole_call_ = false;
    return;
  }
  const JsonScanner::Step step = arguments_->Take(c);
  whole_call_ = step == JsonScanner::Step::kDone;
  if (step != JsonScanner::Step::kMore) arguments_.reset();
}

void HarmonyParser::TakeBody(char c) {
  held_ += c;
  while (!held_.empty()) {
    bool waits = false;
    for (const std::string_view mark : kEnds) {
      const MarkMatch match = MatchMark(held_, mark);
      if (match == MarkMatch::kWhole) {
        held_.clear();
        EndMessage();
        if (mark == kStart || mark == kChannel) header_ = mark;
        return;
      }
      waits = waits || match == MarkMatch::kPrefix;
    }
    if (waits) return;
    Say(std::string_view(held_).substr(0, 1));
    held_.erase(0, 1);
  }
}

void HarmonyParser::EndMessage() {
  if (kind_ == PieceKind::kToolArguments && !said_) Say("{}");
  body_ = false;
  header_.clear();
}

void HarmonyParser::Finish(std::vector<OutputPiece>* pieces) {
  sink_.set_pieces(pieces);
  if (!header_.empty()) whole_call_ = false;
  if (body_) {
    for (const char c : std::exchange(held_, {})) Say({&c, 1});
    const bool cut = !said_;  // arguments that did not come are none, but not complete
    EndMessage();
    whole_call_ = whole_call_ && !cut;
    return;
  }
  // A header that was cut says nothing yet, but where it names a function.
  if (header_.find(kRecipient) != std::string::npos) {
    kind_ = PieceKind::kContent;
    said_ = false;
    Say(WithoutMarks(header_));
  }
  header_.clear();
}

}  // namespace vivace::dialect
