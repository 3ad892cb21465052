// What one event of a streamed answer says, for completions and chat alike.
// Cost: one pass over its text, no DOM, no allocation but for a sentence of an error. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vivace::load {

struct Chunk {
  bool has_choices = false;
  bool has_text = false;  // of the answer: text, content, thoughts, or a piece of a tool call
  int64_t prompt_tokens = -1, cached_tokens = -1, completion_tokens = -1;  // -1: not said
  bool bad_count = false;          // one of them is a number that counts nothing
  std::string_view finish_reason;  // into the event; empty: none
  bool is_error = false;
  std::string error;  // its message
};

// False: not JSON, or not an object. What the answer's text gains is appended to `text`, where that
// is not null: content only, not thoughts.
bool ParseChunk(std::string_view event, Chunk* chunk, std::string* text);

// The message of an error's body in any of the usual shapes; else the text itself, on one line and
// cut to limits::kMaxLoadReasonBytes.
std::string ErrorMessageOf(std::string_view body);

// Valid UTF-8 on one line, of at most limits::kMaxLoadReasonBytes: for what strangers wrote.
std::string Quotable(std::string_view text);

}  // namespace vivace::load
