// The parser of all dialects but Harmony: content in which marks open thoughts and calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/dialect/call_reader.h"
#include "text/dialect/output_parser.h"

namespace vivace::dialect {

class TaggedParser : public OutputParser {
 public:
  TaggedParser(const Dialect& dialect, ReasoningStart start, std::shared_ptr<const ToolSet> tools);

  void Feed(std::string_view text, std::vector<OutputPiece>* pieces) override;
  void Finish(std::vector<OutputPiece>* pieces) override;
  int32_t calls() const override { return calls_; }
  bool reasoning() const override { return state_ == State::kReasoning; }
  bool ends_with_call() const override { return ends_with_call_; }
  bool ends_in_call() const override { return ends_in_call_; }

 private:
  enum class State : uint8_t {
    kContent,
    kReasoning,
    kSection,       // between the calls of a section
    kCall,          // in a reader
    kAfterCall,     // its end mark may follow
    kBrokenCall,    // began, and went wrong: the rest is arguments
    kUnclosedCall,  // its arguments are complete, what should close it is something else
  };
  enum class Does : uint8_t {
    kOpenReasoning,
    kCloseReasoning,
    kOpenSection,
    kCloseSection,
    kOpenCall,
    kReplayCall,  // opens a call, and its text belongs to the call
    kEndCall,
    kDrop,  // a control token that means nothing here
  };
  struct Mark {
    std::string_view text;
    Does does;
  };

  void AddMark(std::vector<Mark>* marks, std::string_view text, Does does) const;
  const std::vector<Mark>& Marks() const;
  void Take(char c);
  void TakeMarked(char c);
  void OnMark(const Mark& mark);
  void Release(char c);
  void ContentByte(char c);
  void ReasoningByte(char c);
  void TakeCall(char c);
  void OpenCall(std::string_view mark);
  void GiveUpCall();
  bool BelongsToCall(char c) const;
  void LeaveCall();
  bool SaysNoMore() const;
  void DropSpace() { space_.clear(); }

  const Dialect& dialect_;
  std::shared_ptr<const ToolSet> tools_;
  int32_t calls_ = 0;
  PieceSink sink_;
  State state_ = State::kContent;
  std::vector<Mark> content_marks_, reasoning_marks_, section_marks_, after_marks_, broken_marks_,
      unclosed_marks_;
  bool at_start_ = true;   // nothing but white space was seen since the output or a call
  bool trim_ = false;      // white space in front is left out
  bool reasoned_ = false;  // the thought at the output's begin is over or was not there
  bool in_section_ = false;
  bool ends_with_call_ = false, ends_in_call_ = false;
  std::string held_;   // the begin of a mark
  std::string space_;  // white space that a mark may follow
  std::string raw_;    // of a call that has not begun, or behind the arguments of an unclosed one
  std::unique_ptr<CallReader> reader_;
};

}  // namespace vivace::dialect
