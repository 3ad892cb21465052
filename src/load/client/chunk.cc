#include "load/client/chunk.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "load/client/json_scan.h"

namespace vivace::load {
namespace {

// A string or null. Whether it has any characters.
bool TakeText(JsonScanner* scan, std::string* text) {
  if (scan->Peek() != '"') {
    scan->Skip();
    return false;
  }
  std::string_view raw;
  if (!scan->String(&raw)) return false;
  if (text != nullptr && text->size() + raw.size() <= limits::kMaxLoadTextBytes) {
    AppendUnescaped(raw, text);
  }
  return !raw.empty();
}

bool TakeNonEmptyArray(JsonScanner* scan) {
  if (scan->Peek() != '[') {
    scan->Skip();
    return false;
  }
  bool any = false;
  scan->BeginArray();
  while (scan->Item() && scan->Skip()) any = true;
  return any;
}

void TakeDelta(JsonScanner* scan, Chunk* chunk, std::string* text) {
  if (scan->Peek() != '{') {
    scan->Skip();
    return;
  }
  scan->BeginObject();
  for (std::string_view name; scan->Member(&name);) {
    if (name == "content") {
      chunk->has_text |= TakeText(scan, text);
    } else if (name == "reasoning_content" || name == "reasoning") {
      chunk->has_text |= TakeText(scan, nullptr);
    } else if (name == "tool_calls") {
      chunk->has_text |= TakeNonEmptyArray(scan);
    } else {
      scan->Skip();
    }
  }
}

void TakeChoices(JsonScanner* scan, Chunk* chunk, std::string* text) {
  if (scan->Peek() != '[') {
    scan->Skip();
    return;
  }
  scan->BeginArray();
  while (scan->Item()) {
    chunk->has_choices = true;
    if (!scan->BeginObject()) return;
    for (std::string_view name; scan->Member(&name);) {
      if (name == "text") {
        chunk->has_text |= TakeText(scan, text);
      } else if (name == "delta") {
        TakeDelta(scan, chunk, text);
      } else if (name == "finish_reason" && scan->Peek() == '"') {
        scan->String(&chunk->finish_reason);
      } else {
        scan->Skip();
      }
    }
  }
}

// A count, or null. A number that counts nothing is remembered.
void TakeCount(JsonScanner* scan, int64_t* count, Chunk* chunk) {
  const char c = scan->Peek();
  const bool number = c >= '0' && c <= '9';
  JsonScanner behind = *scan;
  if (number && behind.Int(count)) {
    *scan = behind;
    return;
  }
  chunk->bad_count |= number;
  scan->Skip();
}

void TakeUsage(JsonScanner* scan, Chunk* chunk) {
  if (scan->Peek() != '{') {
    scan->Skip();
    return;
  }
  scan->BeginObject();
  for (std::string_view name; scan->Member(&name);) {
    if (name == "prompt_tokens") {
      TakeCount(scan, &chunk->prompt_tokens, chunk);
    } else if (name == "completion_tokens") {
      TakeCount(scan, &chunk->completion_tokens, chunk);
    } else if (name == "prompt_tokens_details" && scan->Peek() == '{') {
      scan->BeginObject();
      for (std::string_view detail; scan->Member(&detail);) {
        if (detail == "cached_tokens") {
          TakeCount(scan, &chunk->cached_tokens, chunk);
        } else {
          scan->Skip();
        }
      }
    } else {
      scan->Skip();
    }
  }
}

// {"error": {"message": ...}}, {"error": "..."}.
void TakeError(JsonScanner* scan, Chunk* chunk) {
  if (scan->Peek() == '"') {
    chunk->is_error = true;
    TakeText(scan, &chunk->error);
    return;
  }
  if (scan->Peek() != '{') {  // null: none
    scan->Skip();
    return;
  }
  chunk->is_error = true;
  scan->BeginObject();
  for (std::string_view name; scan->Member(&name);) {
    if (name == "message") {
      TakeText(scan, &chunk->error);
    } else {
      scan->Skip();
    }
  }
}

}  // namespace

bool ParseChunk(std::string_view event, Chunk* chunk, std::string* text) {
  JsonScanner scan(event);
  if (!scan.BeginObject()) return false;
  std::string message;  // {"object": "error", "message": ...}: vLLM's older shape
  bool says_error = false;
  for (std::string_view name; scan.Member(&name);) {
    if (name == "choices") {
      TakeChoices(&scan, chunk, text);
    } else if (name == "usage") {
      TakeUsage(&scan, chunk);
    } else if (name == "error") {
      TakeError(&scan, chunk);
    } else if (name == "message") {
      TakeText(&scan, &message);
    } else if (name == "object" && scan.Peek() == '"') {
      std::string_view object;
      scan.String(&object);
      says_error = object == "error";
    } else {
      scan.Skip();
    }
  }
  if (says_error) {
    chunk->is_error = true;
    chunk->error = std::move(message);
  }
  return scan.AtEnd();
}

std::string Quotable(std::string_view text) {
  std::string line;
  utf8::AppendRepaired(text.substr(0, limits::kMaxLoadReasonBytes), &line);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

std::string ErrorMessageOf(std::string_view body) {
  Chunk chunk;
  if (ParseChunk(body, &chunk, nullptr) && chunk.is_error && !chunk.error.empty()) {
    return Quotable(chunk.error);
  }
  JsonScanner scan(body);  // {"message": ...} or FastAPI's {"detail": ...}
  if (scan.Peek() == '{' && scan.BeginObject()) {
    for (std::string_view name; scan.Member(&name);) {
      std::string message;
      if (name != "message" && name != "detail") {
        scan.Skip();
      } else if (TakeText(&scan, &message)) {
        return Quotable(message);
      }
    }
  }
  return Quotable(body);
}

}  // namespace vivace::load
